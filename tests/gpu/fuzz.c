/*
 * gpu-fuzz --quota BYTES [--steps N] [--seed N] [--hold-every N]
 *
 * Memory by every way in turn and all mixed at random, near the quota. What was granted must never be
 * more than the quota, nor what the tenant is told it uses. Prints JSON lines: "hold", at which it waits
 * for a line of input while ledger and NVML are compared from outside, and at last "end" with its
 * figures. Status 1 with a line on stderr when something was not so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define PLACES 128
#define TIDE_STEPS 100 /* so long it rather fills, then it rather empties */
#define SETTLE_MS 3000 /* what no call names is measured now and then */
#define LEFT_MAX (8 * MIB)

static struct held places[PLACES];
static size_t quota_bytes, granted_bytes, most_granted, most_used;
static unsigned int counts[32], made[32], refused[32];
static unsigned int weights;

static void give_up(const char *what, size_t a, size_t b)
{
	fflush(stdout);
	fprintf(stderr, "gpu-fuzz: %s: %zu, %zu\n", what, a, b);
	exit(1);
}

static void hold(const char *name)
{
	char line[16];

	GPU_DO(ctx_sync);
	printf("{\"at\": \"hold\", \"name\": \"%s\", \"pids\": [%d], \"granted\": %zu, "
	       "\"unseen_bytes\": %zu}\n",
	       name, (int)getpid(), granted_bytes, fuzz_managed_bytes);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static size_t used(void)
{
	size_t free_bytes, total;

	GPU_DO(mem_info, &free_bytes, &total);
	if (total != quota_bytes)
		give_up("cuMemGetInfo's total is not the quota", total, quota_bytes);
	if (free_bytes > total)
		give_up("more is free than there is", free_bytes, total);
	return total - free_bytes;
}

/* Granted bytes are a lower bound of what is held, counted here and by nobody else. */
static void check_quota(void)
{
	size_t now = used();

	if (granted_bytes > most_granted)
		most_granted = granted_bytes;
	if (now > most_used)
		most_used = now;
	if (granted_bytes > quota_bytes || now > quota_bytes)
		give_up("over the quota: granted, used", granted_bytes, now);
}

static unsigned int pick_way(void)
{
	uint64_t at = fuzz_pick(weights);
	unsigned int way = 0;

	while (at >= fuzz_ways[way].weight)
		at -= fuzz_ways[way++].weight;
	return way;
}

static void make(struct held *h)
{
	unsigned int index = pick_way();
	const struct way *way = &fuzz_ways[index];
	CUresult result;

	if (way->most && counts[index] >= way->most)
		return;
	result = way->make(h);
	if (result == CUDA_SUCCESS) {
		h->way = way;
		granted_bytes += h->bytes;
		counts[index]++;
		made[index]++;
		return;
	}
	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		gpu_check(result, way->name);
	refused[index]++;
	memset(h, 0, sizeof(*h));
}

static void step_held(struct held *h)
{
	size_t bytes = h->bytes;

	if (!h->way->step(h))
		return;
	counts[h->way - fuzz_ways]--;
	granted_bytes -= bytes;
	memset(h, 0, sizeof(*h));
}

/* Looks for a place that is full or empty, as the tide has it. */
static void step(unsigned long number)
{
	bool fills = number / TIDE_STEPS % 4 != 3;
	bool wants_full = fuzz_pick(10) < (fills ? 3 : 9);
	struct held *h = &places[fuzz_pick(PLACES)];

	for (int i = 0; i < 8 && (h->way != NULL) != wants_full; i++)
		h = &places[fuzz_pick(PLACES)];
	if (h->way)
		step_held(h);
	else
		make(h);
	if (fuzz_pick(100) == 0)
		fuzz_trim();
	check_quota();
}

static void free_all(void)
{
	for (int i = 0; i < PLACES; i++)
		while (places[i].way)
			step_held(&places[i]);
	fuzz_trim();
}

/* How far the use is from what it was at first, once the daemon has looked again. */
static size_t left_over(size_t at_first)
{
	struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };
	size_t left = 0;

	for (int ms = 0; ms < SETTLE_MS; ms += 50) {
		size_t now = used();

		left = now > at_first ? now - at_first : at_first - now;
		if (left <= LEFT_MAX)
			break;
		nanosleep(&pause, NULL);
	}
	return left;
}

static void say_end(unsigned long steps, uint64_t seed, size_t left)
{
	unsigned long all_made = 0, all_refused = 0;

	for (unsigned int i = 0; i < fuzz_ways_count; i++) {
		all_made += made[i];
		all_refused += refused[i];
	}
	printf("{\"at\": \"end\", \"seed\": %llu, \"steps\": %lu, \"made\": %lu, \"refused\": %lu, "
	       "\"most_granted\": %zu, \"most_used\": %zu, \"left\": %zu, \"ways\": {",
	       (unsigned long long)seed, steps, all_made, all_refused, most_granted, most_used,
	       left);
	for (unsigned int i = 0; i < fuzz_ways_count; i++)
		printf("%s\"%s\": [%u, %u]", i ? ", " : "", fuzz_ways[i].name, made[i], refused[i]);
	printf("}}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned long steps = 10000, hold_every = 500;
	uint64_t seed = 1;
	size_t at_first, left;
	char name[32];

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--quota") == 0)
			quota_bytes = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--steps") == 0)
			steps = strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--hold-every") == 0)
			hold_every = strtoul(argv[i + 1], NULL, 10);
	}
	if (argc % 2 == 0 || !quota_bytes || !hold_every) {
		fprintf(stderr, "usage: gpu-fuzz --quota BYTES [--steps N] [--seed N] "
				"[--hold-every N]\n");
		return 2;
	}
	for (unsigned int i = 0; i < fuzz_ways_count; i++)
		weights += fuzz_ways[i].weight;
	gpu_open(1);
	fuzz_begin(seed);
	hold("start");
	at_first = used();
	for (unsigned long i = 0; i < steps; i++) {
		step(i);
		if ((i + 1) % hold_every == 0) {
			snprintf(name, sizeof(name), "step %lu", i + 1);
			hold(name);
		}
	}
	free_all();
	hold("all freed");
	left = left_over(at_first);
	fuzz_end();
	say_end(steps, seed, left);
	GPU_DO(primary_release, gpu.dev);
	if (left > LEFT_MAX)
		give_up("not back to what it was: left, at first", left, at_first);
	return 0;
}
