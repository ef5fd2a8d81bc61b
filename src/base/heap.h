/*
 * Tunes malloc for a process that repeatedly takes megabytes for a request and frees them. Free memory is kept instead of being
 * returned to the kernel and faulted in again for the next request. This makes allot-scheduler's slowest replies faster when
 * kube-scheduler asks about many nodes (`bench/scheduler_scale.c`). Call at the beginning of main(), before threads.
 */
#pragma once

#include <malloc.h>

#define HEAP_KEEP_BYTES (64 << 20) /* up to this much free memory at the heap's end is kept */
#define HEAP_STEP_BYTES (4 << 20)  /* the heap grows by at least this much */

static inline void heap_keep(void)
{
	mallopt(M_TRIM_THRESHOLD, HEAP_KEEP_BYTES);
	mallopt(M_MMAP_THRESHOLD, HEAP_KEEP_BYTES / 2);
	mallopt(M_TOP_PAD, HEAP_STEP_BYTES);
}
