/*
 * steps SECONDS [KERNELS [PAUSE_US]]: a training on a simulated GPU. Each step is KERNELS (40) kernels of 0.5 ms and a wait for
 * all of them; between two steps it does something else for PAUSE_US (0). Linked with the driver.
 */
#define _GNU_SOURCE

#include "training.h"

int main(int argc, char **argv)
{
	double end_s = now_s() + (argc > 1 ? atof(argv[1]) : 5);
	int kernels = argc > 2 ? atoi(argv[2]) : 40;
	double pause_s = argc > 3 ? atof(argv[3]) / 1e6 : 0;
	cu_context context;
	cu_module module;
	cu_function work;

	check(cuInit(0), "init");
	check(cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(cuCtxSetCurrent(context), "current");
	check(cuModuleLoadData(&module, NO_CODE), "module");
	check(cuModuleGetFunction(&work, module, "allot_sim_500us_132b"), "kernel");
	while (now_s() < end_s) {
		for (int i = 0; i < kernels; i++)
			check(cuLaunchKernel(work, 132, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL),
			      "launch");
		check(cuCtxSynchronize(), "synchronize");
		for (double until_s = now_s() + pause_s; now_s() < until_s;)
			;
	}
	return 0;
}
