/*
 * partners WAY SECONDS: two processes on one GPU that need each other.
 *
 *     spin    each launches ten kernels of 0.2 ms and one that spins until its like has come as far
 *     relay   a kernel of 0.3 ms, and word to the other, which was waiting for it on the CPU
 *     apart   as spin, without the one that spins: they don't need each other
 *
 * Prints how many rounds were done and how long the longest took. Linked with the driver.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "training.h"

#define KERNELS 10
#define WORDS 4096 /* rounds of which a word is not used again */
#define PAGE 4096

cu_result cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags);
cu_result cuMemHostGetDevicePointer_v2(cu_pointer *ret, void *at, unsigned flags);

static struct shared {
	_Alignas(PAGE) volatile uint32_t begun[2][WORDS];
	_Alignas(PAGE) _Atomic unsigned rounds[2];
	_Atomic unsigned ready;
	_Atomic unsigned last; /* round; 0: not decided yet */
	_Atomic uint64_t longest_us;
} * shared;

static cu_function work, spin;
static cu_stream stream;
static cu_pointer begun[2];

static void launch(cu_function function, void **params)
{
	check(cuLaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, stream, params, NULL), "launch");
}

static void start(int self)
{
	cu_context context;
	cu_module module;

	check(cuInit(0), "init");
	check(cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(cuCtxSetCurrent(context), "current");
	check(cuModuleLoadData(&module, NO_CODE), "module");
	check(cuModuleGetFunction(&work, module, "allot_sim_200us_132b"), "kernel");
	check(cuModuleGetFunction(&spin, module, "allot_sim_spin_132b"), "spin kernel");
	check(cuStreamCreate(&stream, 1), "stream");
	for (int i = 0; i < 2; i++) {
		void *words = (void *)(uintptr_t)shared->begun[i];

		check(cuMemHostRegister_v2(words, sizeof(shared->begun[i]), 0), "register");
		check(cuMemHostGetDevicePointer_v2(&begun[i], words, 0), "device pointer");
	}
	atomic_fetch_add(&shared->ready, 1);
	while (atomic_load(&shared->ready) < 2)
		usleep(100);
}

static void spin_round(int self, unsigned round, int needs_other)
{
	unsigned at = round % WORDS;
	cu_pointer other = begun[!self] + 4 * at;
	void *params[] = { &other };

	shared->begun[self][(round + WORDS / 2) % WORDS] = 0;
	for (int i = 0; i < KERNELS; i++)
		launch(work, NULL);
	check(cuStreamWriteValue32_v2(stream, begun[self] + 4 * at, 1, 0), "write");
	if (needs_other)
		launch(spin, params);
	check(cuStreamSynchronize(stream), "synchronize");
}

static void relay_round(int self, unsigned round)
{
	/* The first of a round goes ahead; the second awaits it. */
	while (atomic_load(&shared->rounds[!self]) < (self ? round : round - 1))
		usleep(20);
	launch(work, NULL);
	check(cuStreamSynchronize(stream), "synchronize");
}

static int run(int self, const char *way, double seconds)
{
	start(self);
	double end_s = now_s() + seconds;

	for (unsigned round = 1;; round++) {
		unsigned last = atomic_load(&shared->last);
		double begin_s = now_s();

		if (last && round > last)
			return 0;
		if (!strcmp(way, "relay"))
			relay_round(self, round);
		else
			spin_round(self, round, !strcmp(way, "spin"));
		uint64_t took_us = (uint64_t)((now_s() - begin_s) * 1e6);
		if (took_us > atomic_load(&shared->longest_us))
			atomic_store(&shared->longest_us, took_us);
		atomic_store(&shared->rounds[self], round);
		/* Neither is more than a round ahead where they need each other. */
		if (self == 0 && !last && now_s() >= end_s)
			atomic_store(&shared->last, round + 2);
	}
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "spin";
	double seconds = argc > 2 ? atof(argv[2]) : 5, begin_s;
	int status[2] = { 1, 1 };
	pid_t child[2];

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	begin_s = now_s();
	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		if (child[i] < 0)
			return 1;
		if (!child[i])
			exit(run(i, way, seconds));
	}
	for (int i = 0; i < 2; i++)
		waitpid(child[i], &status[i], 0);
	printf("{\"rounds\": %u, \"seconds\": %.3f, \"longest_ms\": %.1f}\n",
	       atomic_load(&shared->rounds[0]), now_s() - begin_s,
	       (double)atomic_load(&shared->longest_us) / 1e3);
	return status[0] || status[1];
}
