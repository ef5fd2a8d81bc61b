/*
 * For benches alone: liballot-bypass.so, which is never installed, is liballot.so and this. A program of which the launching
 * thread sets the pace differs from process to process by more than the bar for what the library costs it (ResNet18 of batch 32, native,
 * on an H200: 3 %, one standard deviation), so it is compared with itself.
 */
#pragma once

#include <stdbool.h>

/*
 * true: from here on calls go to the driver as if no tenant were configured, uncounted and ungated, until false. Only between two
 * pieces of work, with nothing allocated or freed meanwhile: it would not be charged. Nothing in a process that is no tenant's. One
 * thread at a time.
 */
void allot_bypass(bool is_on);
