/*
 * A unit of GPU work as the gate sees it. The WORK_ macros build one from a driver call's parameters in
 * driver_table.h. What is expensive to compute (hashes, predictions) is computed only when needed.
 */
#pragma once

#include <stdint.h>

#include "abi/cuda_abi.h"

/*
 * True if the work's description may read what the pointer points to. If the driver refuses a call before reading
 * a pointer, the description must not read it either, since the pointer may be invalid. work_reads(), defined in
 * the scope of the description, decides that for all pointers.
 */
#define WORK_READS(pointer) ((pointer) && work_reads())

/* What a NULL stream means to an entry point. */
enum stream_meaning { LEGACY, PER_THREAD };

enum work_kind {
	WORK_IS_KERNEL, /* asynchronous; predicted by function and shape */
	WORK_IS_GRAPH,  /* asynchronous; predicted by executable graph */
	WORK_IS_COPY,   /* asynchronous; predicted by entry point and size */
	/* Done when the call returns; nothing stays in flight. */
	WORK_IS_SYNC,
};

struct work {
	enum work_kind kind;
	enum stream_meaning streams;
	CUstream stream;
	const void *subject; /* function, executable graph, or the entry point's name */
	/* of a kernel; for a copy, `blocks` is the number of bytes */
	uint64_t blocks, threads;
};

#define WORK_KERNEL(stream_, function_, blocks_, threads_) \
	{ \
		.kind = WORK_IS_KERNEL, .stream = (stream_), .subject = (function_), \
		.blocks = (blocks_), .threads = (threads_) \
	}
#define WORK_GRAPH(stream_, exec_) \
	{ \
		.kind = WORK_IS_GRAPH, .stream = (stream_), .subject = (exec_) \
	}
#define WORK_COPY(stream_, bytes_) \
	{ \
		.kind = WORK_IS_COPY, .stream = (stream_), .subject = __func__, .blocks = (bytes_) \
	}
#define WORK_SYNC(bytes_) \
	{ \
		.kind = WORK_IS_SYNC, .stream = NULL, .subject = __func__, .blocks = (bytes_) \
	}

/* Returns the work of cuLaunchKernelEx. `c` is NULL if its configuration must not be read. */
static inline struct work work_configured(const CUlaunchConfig *c, CUfunction f)
{
	if (!c)
		return (struct work)WORK_KERNEL(NULL, f, 0, 0);
	return (struct work)WORK_KERNEL(c->hStream, f,
					(uint64_t)c->gridDimX * c->gridDimY * c->gridDimZ,
					(uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ);
}

/* Returns the total bytes of a batch of copies. */
static inline uint64_t work_batch_bytes(const size_t *sizes, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += sizes[i];
	return bytes;
}
