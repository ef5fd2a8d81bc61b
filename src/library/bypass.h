/*
 * For benchmarks only. liballot-bypass.so is liballot.so plus the function below; the file is never installed.
 * Where the launching thread limits a program's speed, the speed differs between processes by more than the
 * library may cost (ResNet18 with batch 32, without the library, on an H200: 3 %, one standard deviation). So a
 * benchmark measures one process with and without the library.
 */
#pragma once

#include <stdbool.h>

/*
 * If `is_on`, calls go to the driver as if no tenant were configured, uncounted and ungated, until a call with
 * false. Call this only between two pieces of work. Allocate and free nothing meanwhile, since such memory would
 * not be charged. Has no effect in a process that belongs to no tenant. One thread at a time.
 */
void allot_bypass(bool is_on);
