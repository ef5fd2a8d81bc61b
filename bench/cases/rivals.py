"""Results of HAMi-core on one H200 with the same load, measured on 2026-11-20 (driver 580.159.04), with its NVML fix
and GPU_CORE_UTILIZATION_POLICY=FORCE."""

SOURCE = "HAMi-core 8f3a89c, measured earlier on an H200, driver 580.159.04, 2026-11-20"

CAP_PCT = {(132, 20): 99.9, (132, 50): 92.4, (132, 80): 99.9,
           (8192, 20): 32.1, (8192, 50): 64.9, (8192, 80): 83.9}
THREE_PCT = {45: 48.0, 30: 25.8, 15: 7.4}
FIFTY_PCT = 22.1
FOUR_PCT = 17.5
RESNET_HALF_TIMES = 1.0
