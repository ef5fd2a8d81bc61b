/*
 * For benchmarks only. liballot-bypass.so is liballot.so plus the function below; the file is never installed. A
 * benchmark uses it to measure one process with and without the library. The speeds of two processes can't be compared:
 * where the launching thread limits the speed, two processes differ by more than the library costs.
 */
#pragma once

#include <stdbool.h>

/*
 * If `is_on`, calls go to the driver uncounted and ungated, as if no tenant were configured, until a call with false. Call this
 * only between two units of GPU work. Allocate and free nothing meanwhile, since such memory would not be charged. Has no
 * effect in a process that belongs to no tenant. One thread at a time.
 */
void allot_bypass(bool is_on);
