/* A unit of GPU work as the gate sees it. The WORK_ macros describe the calls in driver_table.h. */
#pragma once

#include <stdint.h>

#include "abi/cuda_abi.h"

/*
 * A call that the driver will refuse may have an invalid pointer. So a WORK_ description in driver_table.h reads what an
 * argument points to only if this is true. The code around it defines work_reads().
 */
#define WORK_READS(pointer) ((pointer) && work_reads())

/* The meaning of a NULL stream in a driver call. */
enum stream_meaning { LEGACY, PER_THREAD };

enum work_kind {
	WORK_IS_KERNEL, /* asynchronous; predicted by function and shape */
	WORK_IS_GRAPH,  /* asynchronous; predicted by executable graph */
	WORK_IS_COPY,   /* asynchronous; predicted by function and size */
	WORK_IS_SYNC,   /* done when the call returns */
};

struct work {
	enum work_kind kind;
	enum stream_meaning streams;
	CUstream stream;
	const void *subject; /* function, executable graph, or the driver call's name */
	/* A kernel's blocks, and threads per block. A copy has its bytes in `blocks`. */
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

/* A kernel launch with configuration `c`, which is NULL if it must not be read. */
static inline struct work work_configured(const CUlaunchConfig *c, CUfunction f)
{
	if (!c)
		return (struct work)WORK_KERNEL(NULL, f, 0, 0);
	return (struct work)WORK_KERNEL(c->hStream, f,
					(uint64_t)c->gridDimX * c->gridDimY * c->gridDimZ,
					(uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ);
}

static inline uint64_t work_batch_bytes(const size_t *sizes, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += sizes[i];
	return bytes;
}
