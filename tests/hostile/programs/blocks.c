/*
 * blocks SECONDS: launches kernels of 10 ms, each with another number of threads, so that the library knows the length of none.
 * It never waits for any. Linked with the driver. Prints "begun".
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "training.h"

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	cu_function work = begin_with("allot_sim_10000us_264b");
	puts("begun");
	fflush(stdout);
	double end = now_s() + atof(argv[1]);
	for (unsigned i = 0; now_s() < end; i++)
		check(cuLaunchKernel(work, 264, 1, 1, 1 + i % 1024, 1, 1, 0, NULL, NULL, NULL),
		      "launch");
	_exit(0);
}
