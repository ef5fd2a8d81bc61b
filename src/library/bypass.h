/*
 * For benchmarks only: liballot-bypass.so is liballot.so plus the function below, and is never installed. A benchmark measures
 * one process with and without the library, because two processes differ in speed by more than the library costs.
 */
#pragma once

#include <stdbool.h>

/*
 * While on, calls go to the driver uncounted. Switch only between two units of GPU work, and allocate and free nothing while
 * on, because that memory would not be charged. No effect in a process that belongs to no tenant. One thread at a time.
 */
void allot_bypass(bool is_on);
