/*
 * ranks SECONDS: a training on two simulated GPUs. A thread each launches, without waiting for the other,
 * ten kernels of 0.5 ms and then a collective: a kernel that spins until its like has begun on the other
 * GPU. Prints how many collectives ended, and how long at most one of the threads waited for four rounds,
 * which alone take 20 ms. Linked with the driver.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "training.h"

#define KERNELS 10
#define SYNC_EVERY 4
#define RING 4096 /* more rounds than one rank can be ahead */

static volatile uint32_t begun[2][RING];
static double end_s;
static struct rank {
	pthread_t thread;
	int device;
	unsigned rounds;
	double longest_s;
} rank[2];

static void run_round(const struct rank *r, cu_function work, cu_function spin, cu_stream stream)
{
	unsigned at = r->rounds % RING;
	cu_pointer other = (cu_pointer)(uintptr_t)&begun[!r->device][at];
	void *params[] = { &other };

	for (int i = 0; i < KERNELS; i++)
		check(cuLaunchKernel(work, 132, 1, 1, 256, 1, 1, 0, stream, NULL, NULL), "launch");
	check(cuStreamWriteValue32_v2(stream, (cu_pointer)(uintptr_t)&begun[r->device][at], 1, 0),
	      "write");
	check(cuLaunchKernel(spin, 132, 1, 1, 256, 1, 1, 0, stream, params, NULL), "spin");
}

/* Both ranks stop after the same round: the first's flag of it tells the second. */
static volatile unsigned last_round;

static void *run(void *data)
{
	struct rank *r = data;
	cu_context context;
	cu_module module;
	cu_function work, spin;
	cu_stream stream;

	check(cuDevicePrimaryCtxRetain(&context, r->device), "context");
	check(cuCtxSetCurrent(context), "current");
	check(cuModuleLoadData(&module, NO_CODE), "module");
	check(cuModuleGetFunction(&work, module, "allot_sim_500us_132b"), "kernel");
	check(cuModuleGetFunction(&spin, module, "allot_sim_spin_132b"), "spin kernel");
	check(cuStreamCreate(&stream, 1), "stream");
	for (;;) {
		double begin_s = now_s();
		unsigned last = last_round;

		if (last && r->rounds >= last)
			return NULL;
		for (int i = 0; i < SYNC_EVERY; i++, r->rounds++)
			run_round(r, work, spin, stream);
		/* The other is not more than one batch ahead: this one's collectives have not begun. */
		if (r->device == 0 && !last_round && now_s() >= end_s)
			last_round = r->rounds + 2 * SYNC_EVERY;
		check(cuStreamSynchronize(stream), "synchronize");
		if (now_s() - begin_s > r->longest_s)
			r->longest_s = now_s() - begin_s;
		for (unsigned i = r->rounds - SYNC_EVERY; i != r->rounds; i++)
			begun[!r->device][i % RING] = 0;
	}
}

int main(int argc, char **argv)
{
	double begin_s = now_s();

	check(cuInit(0), "init");
	end_s = begin_s + (argc > 1 ? atof(argv[1]) : 5);
	for (int i = 0; i < 2; i++) {
		rank[i].device = i;
		if (pthread_create(&rank[i].thread, NULL, run, &rank[i]))
			return 1;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(rank[i].thread, NULL);
	printf("{\"collectives\": %u, \"seconds\": %.3f, \"longest_ms\": %.1f}\n", rank[0].rounds,
	       now_s() - begin_s,
	       1e3 * (rank[0].longest_s > rank[1].longest_s ? rank[0].longest_s : rank[1].longest_s));
	return rank[0].rounds != rank[1].rounds;
}
