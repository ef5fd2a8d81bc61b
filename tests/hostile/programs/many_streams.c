/*
 * many_streams STREAMS SECONDS: launches a kernel of 0.2 ms that fills the GPU once into each stream, and from then on into
 * the second half of them by turns. It never waits for any. Linked with the driver.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "training.h"

#define MOST 8192

int main(int argc, char **argv)
{
	static cu_stream stream[MOST];
	unsigned streams = argc == 3 ? (unsigned)atoi(argv[1]) : 0;

	if (!streams || streams > MOST)
		return 2;
	cu_function work = begin_with("allot_sim_200us_264b");
	for (unsigned i = 0; i < streams; i++)
		check(cuStreamCreate(&stream[i], 1), "stream");
	puts("begun");
	fflush(stdout);
	double end = now_s() + atof(argv[2]);
	for (unsigned i = 0; now_s() < end; i = i + 1 < streams ? i + 1 : streams / 2)
		check(cuLaunchKernel(work, 264, 1, 1, 256, 1, 1, 0, stream[i], NULL, NULL),
		      "launch");
	_exit(0);
}
