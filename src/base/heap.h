/*
 * The heap of a process that takes megabytes for a request and frees them after it: kept, instead of given back to the kernel and faulted in
 * again page by page with the next one. Filter with the names of 5,000 nodes, from JSON to JSON: 7.7 to 9.9 ms at the worst 99th
 * percentile of five kinds in six runs, 7.6 to 13.5 without (`bench/scheduler_scale.c`). At the begin of main(), before threads.
 */
#pragma once

#include <malloc.h>

#define HEAP_KEEP_BYTES (64 << 20) /* so much that is free at its end is kept */
#define HEAP_STEP_BYTES (4 << 20)  /* it grows by at least so much */

static inline void heap_keep(void)
{
	mallopt(M_TRIM_THRESHOLD, HEAP_KEEP_BYTES);
	mallopt(M_MMAP_THRESHOLD, HEAP_KEEP_BYTES / 2);
	mallopt(M_TOP_PAD, HEAP_STEP_BYTES);
}
