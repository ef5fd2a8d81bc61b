/*
 * What the trainings among these programs have in common: kernels of the simulated GPU, launched through the driver that they
 * are linked with. To be included after _GNU_SOURCE is defined.
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "use.h"

#define NO_CODE ".version 6.0\n.target sm_60\n.address_size 64\n"

typedef struct cu_module *cu_module;
typedef struct cu_function *cu_function;
typedef struct cu_stream *cu_stream;

cu_result cuInit(unsigned int flags);
cu_result cuDevicePrimaryCtxRetain(cu_context *ret, int device);
cu_result cuCtxSetCurrent(cu_context context);
cu_result cuCtxSynchronize(void);
cu_result cuStreamCreate(cu_stream *ret, unsigned int flags);
cu_result cuStreamSynchronize(cu_stream stream);
cu_result cuModuleLoadData(cu_module *ret, const void *image);
cu_result cuModuleGetFunction(cu_function *ret, cu_module module, const char *name);
cu_result cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			 unsigned by, unsigned bz, unsigned shared, cu_stream stream, void **params,
			 void **extra);
cu_result cuStreamWriteValue32_v2(cu_stream stream, cu_pointer at, uint32_t value, unsigned flags);

static inline double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Ends the program when a call failed. */
static inline void check(cu_result result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %s: %d\n", program_invocation_short_name, what, result);
	exit(1);
}

/* Begins work on GPU 0 with its primary context, and returns a kernel of the simulated GPU. */
static inline cu_function begin_with(const char *kernel)
{
	cu_context context;
	cu_module module;
	cu_function work;

	check(cuInit(0), "init");
	check(cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(cuCtxSetCurrent(context), "current");
	check(cuModuleLoadData(&module, NO_CODE), "module");
	check(cuModuleGetFunction(&work, module, kernel), "kernel");
	return work;
}
