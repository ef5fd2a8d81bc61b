/*
 * Tunes malloc for a process that repeatedly takes megabytes for a request and frees them: free memory is kept, so that the
 * kernel need not supply it again. This makes allot-scheduler's slowest replies faster when kube-scheduler asks about many
 * nodes (`bench/scheduler_scale.c`). Call at the beginning of main(), before threads.
 */
#pragma once

#include <malloc.h>

#define HEAP_KEEP_BYTES (64 << 20) /* most free memory that is kept at the heap's end */
#define HEAP_STEP_BYTES (4 << 20)  /* least growth of the heap */

static inline void heap_keep(void)
{
	mallopt(M_TRIM_THRESHOLD, HEAP_KEEP_BYTES);
	mallopt(M_MMAP_THRESHOLD, HEAP_KEEP_BYTES / 2);
	mallopt(M_TOP_PAD, HEAP_STEP_BYTES);
}
