/*
 * blocks SECONDS: launches kernels of 10 ms, each with another number of threads, so that the library knows the length of none.
 * It never waits for any. Linked with the driver. Prints "begun".
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "training.h"

int main(int argc, char **argv)
{
	cu_context context;
	cu_module module;
	cu_function work;

	if (argc != 2)
		return 2;
	check(cuInit(0), "init");
	check(cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(cuCtxSetCurrent(context), "current");
	check(cuModuleLoadData(&module, NO_CODE), "module");
	check(cuModuleGetFunction(&work, module, "allot_sim_10000us_264b"), "kernel");
	puts("begun");
	fflush(stdout);
	double end = now_s() + atof(argv[1]);
	for (unsigned i = 0; now_s() < end; i++)
		check(cuLaunchKernel(work, 264, 1, 1, 1 + i % 1024, 1, 1, 0, NULL, NULL, NULL),
		      "launch");
	_exit(0);
}
