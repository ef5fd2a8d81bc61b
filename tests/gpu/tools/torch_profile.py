"""Profiles a product of matrices with torch.profiler and prints how many kernels it recorded."""

import torch
from torch.profiler import ProfilerActivity, profile

a = torch.randn(256, 256, device="cuda")
torch.mm(a, a)
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
    for _ in range(5):
        torch.mm(a, a)
    torch.cuda.synchronize()
kernels = [event for event in recorded.events() if event.device_type == torch.autograd.DeviceType.CUDA]
print(f"profiled {sum(1 for event in kernels if 'gemm' in event.name or 'cutlass' in event.name)} products", flush=True)
