/*
 * steps SECONDS: a training on a simulated GPU: steps of 40 kernels of 0.5 ms, after each of which it waits for all of
 * them. Linked with the driver.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "use.h"

#define KERNELS 40

typedef struct cu_module *cu_module;
typedef struct cu_function *cu_function;
typedef struct cu_stream *cu_stream;

cu_result cuInit(unsigned int flags);
cu_result cuDevicePrimaryCtxRetain(cu_context *ret, int device);
cu_result cuCtxSetCurrent(cu_context context);
cu_result cuCtxSynchronize(void);
cu_result cuModuleLoadData(cu_module *ret, const void *image);
cu_result cuModuleGetFunction(cu_function *ret, cu_module module, const char *name);
cu_result cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			 unsigned by, unsigned bz, unsigned shared, cu_stream stream, void **params,
			 void **extra);

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(cu_result result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "steps: %s: %d\n", what, result);
	exit(1);
}

int main(int argc, char **argv)
{
	double end_s = now_s() + (argc > 1 ? atof(argv[1]) : 5);
	cu_context context;
	cu_module module;
	cu_function work;

	check(cuInit(0), "init");
	check(cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(cuCtxSetCurrent(context), "current");
	check(cuModuleLoadData(&module, ".version 6.0\n.target sm_60\n.address_size 64\n"),
	      "module");
	check(cuModuleGetFunction(&work, module, "allot_sim_500us_132b"), "kernel");
	while (now_s() < end_s) {
		for (int i = 0; i < KERNELS; i++)
			check(cuLaunchKernel(work, 132, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL),
			      "launch");
		check(cuCtxSynchronize(), "synchronize");
	}
	return 0;
}
