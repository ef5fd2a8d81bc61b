/*
 * steps SECONDS: a training on a simulated GPU: steps of 40 kernels of 0.5 ms, after each of which it waits for all of
 * them. Linked with the driver.
 */
#define _GNU_SOURCE

#include "training.h"

#define KERNELS 40

int main(int argc, char **argv)
{
	double end_s = now_s() + (argc > 1 ? atof(argv[1]) : 5);
	cu_context context;
	cu_module module;
	cu_function work;

	check(cuInit(0), "init");
	check(cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(cuCtxSetCurrent(context), "current");
	check(cuModuleLoadData(&module, NO_CODE), "module");
	check(cuModuleGetFunction(&work, module, "allot_sim_500us_132b"), "kernel");
	while (now_s() < end_s) {
		for (int i = 0; i < KERNELS; i++)
			check(cuLaunchKernel(work, 132, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL),
			      "launch");
		check(cuCtxSynchronize(), "synchronize");
	}
	return 0;
}
