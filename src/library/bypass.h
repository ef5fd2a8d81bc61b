/*
 * For benchmarks only: liballot-bypass.so is liballot.so plus the function below, and is never installed. A benchmark measures
 * one process with and without the library, because two processes differ in speed by more than the library costs.
 */
#pragma once

#include <stdbool.h>

/*
 * Turns the bypass on or off. While it is on, calls go to the driver uncounted. Allocate and free nothing meanwhile, because
 * that memory would not be charged. Call this only between two units of GPU work, in one thread at a time. No effect in a
 * process that belongs to no tenant.
 */
void allot_bypass(bool is_on);
