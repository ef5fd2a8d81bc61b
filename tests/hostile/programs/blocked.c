/*
 * blocked SECONDS: one launch waits in its stream for ever, and the program launches kernels of 0.2 ms into another stream. Linked
 * with the driver. Prints "begun".
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "training.h"

cu_result cuMemAlloc_v2(uint64_t *, size_t);
cu_result cuMemsetD32_v2(uint64_t, unsigned, size_t);
cu_result cuStreamWaitValue32_v2(cu_stream, uint64_t, uint32_t, unsigned);

int main(int argc, char **argv)
{
	cu_stream waiting, other;
	uint64_t word;

	if (argc != 2)
		return 2;
	cu_function work = begin_with("allot_sim_200us_264b");
	check(cuStreamCreate(&waiting, 1), "stream");
	check(cuStreamCreate(&other, 1), "stream");
	check(cuMemAlloc_v2(&word, 4096), "memory");
	check(cuMemsetD32_v2(word, 0, 1), "memset");
	check(cuCtxSynchronize(), "synchronize");
	check(cuStreamWaitValue32_v2(waiting, word, 1, 1), "wait");
	check(cuLaunchKernel(work, 264, 1, 1, 256, 1, 1, 0, waiting, NULL, NULL), "launch");
	puts("begun");
	fflush(stdout);
	for (double end = now_s() + atof(argv[1]); now_s() < end;)
		check(cuLaunchKernel(work, 264, 1, 1, 256, 1, 1, 0, other, NULL, NULL), "launch");
	_exit(0);
}
