/*
 * Only in liballot-bypass.so, a liballot.so for benchmarks that is never installed. A benchmark measures one process with and
 * without the library, because two processes differ in speed by more than the library costs.
 */
#pragma once

#include <stdbool.h>

/*
 * While the bypass is on, calls go to the driver uncounted. Allocate and free nothing meanwhile, because that memory would not
 * be charged. Call this only between two units of GPU work, in one thread at a time. No effect in a process without a tenant.
 */
void allot_bypass(bool is_on);
