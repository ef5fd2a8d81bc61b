/*
 * free_cost: a free with 100,000 live allocations costs at most twice a free with 100, as the
 * program sees it, through the whole library and the simulated driver. Of 2 MiB each, where the
 * driver asks the card, and of 512 bytes each, where the simulated driver takes less than a tenth
 * of a microsecond (no real one does); of these also without the library, to compare.
 * tests/unit/library/memory/test_free_cost.c measures the library's own part.
 *
 * Whoever shares the processor's caches with us, on a virtual machine, makes the free with many
 * dearer for seconds: the median is of rounds that are spread over the test, and a try that fails is
 * made again, twice at most. Where the machine is so contended that frees get more than twice as dear without
 * the library too, they may get as much dearer with it; of 2 MiB that takes long, so it is measured in tries
 * after the first alone. And what a few lines of memory take that are in no cache (MISSES_US) is no growth: of
 * 0.05 us it is a multiple, of what a real driver takes for a free (1.4 us on an H200) a tenth.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "gpu.h"
#include "stage.h"

#define SAMPLES 1001
#define TURNS 5  /* of each case, by turns */
#define ROUNDS 5 /* in a turn, but one of LARGE: it takes seconds */
#define TRIES 3
#define FEW 100
#define MANY 100000
#define MISSES_US 0.2

struct figures {
	double few_us, many_us, ratio;
};

enum { LARGE, SMALL, SMALL_WITHOUT, LARGE_WITHOUT, CASES };

struct board {
	unsigned count[CASES];
	struct figures rounds[CASES][TURNS * ROUNDS];
};

static CUdeviceptr pointers[MANY];

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int compare_ratio(const void *a, const void *b)
{
	double x = ((const struct figures *)a)->ratio, y = ((const struct figures *)b)->ratio;

	return (x > y) - (x < y);
}

/* A free of one of the first `live`, all of which are allocated. */
static double median_us(unsigned live, uint64_t bytes, uint64_t *random)
{
	static uint64_t took[SAMPLES];

	for (unsigned n = 0; n < SAMPLES; n++) {
		unsigned i = (unsigned)(random_of(random) % live);
		CUdeviceptr ptr = pointers[i];
		uint64_t begin = now_ns();
		GPU_DO(cuMemFree_v2(ptr));
		took[n] = now_ns() - begin;
		GPU_DO(cuMemAlloc_v2(&pointers[i], bytes));
	}
	qsort(took, SAMPLES, sizeof(took[0]), compare_u64);
	return (double)took[SAMPLES / 2] / 1e3;
}

/* With few before and after: what slows the machine meanwhile is in both. */
static struct figures measure(uint64_t bytes, uint64_t *random)
{
	double before, many, after;

	for (unsigned i = 0; i < FEW; i++)
		GPU_DO(cuMemAlloc_v2(&pointers[i], bytes));
	before = median_us(FEW, bytes, random);
	for (unsigned i = FEW; i < MANY; i++)
		GPU_DO(cuMemAlloc_v2(&pointers[i], bytes));
	many = median_us(MANY, bytes, random);
	for (unsigned i = FEW; i < MANY; i++)
		GPU_DO(cuMemFree_v2(pointers[i]));
	after = median_us(FEW, bytes, random);
	for (unsigned i = 0; i < FEW; i++)
		GPU_DO(cuMemFree_v2(pointers[i]));
	return (struct figures){ (before + after) / 2, many, 2 * many / (before + after) };
}

static int be_process(char **argv)
{
	struct board *board = open_board(argv[2], sizeof(*board));
	int what = atoi(argv[3]);
	uint64_t random = 1 + board->count[what];

	gpu_start();
	bool is_large = what == LARGE || what == LARGE_WITHOUT;
	for (int i = 0; i < (is_large ? 1 : ROUNDS); i++)
		board->rounds[what][board->count[what]++] = measure(is_large ? 2 * MIB : 512,
								    &random);
	return 0;
}

static bool run(const struct stage *s, const struct stage_tenant *tenant, char *self, int fd,
		int what)
{
	char fd_text[16], number[16];
	int status = 0;

	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	snprintf(number, sizeof(number), "%d", what);
	char *const args[] = { self, (char *)"process", fd_text, number, NULL };
	waitpid(stage_spawn(s, tenant, args), &status, 0);
	return status == 0;
}

/* False when a process failed. */
static bool run_turns(const struct stage *s, const struct stage_tenant *tenant, char *self, int fd,
		      int cases)
{
	for (int turn = 0; turn < TURNS; turn++)
		for (int what = 0; what < cases; what++)
			if (!run(s, what >= SMALL_WITHOUT ? NULL : tenant, self, fd, what))
				return false;
	return true;
}

/* The round of the median ratio. */
static struct figures median_of(struct board *board, int what)
{
	qsort(board->rounds[what], board->count[what], sizeof(struct figures), compare_ratio);
	return board->rounds[what][board->count[what] / 2];
}

#define RATIO_MOST 2

static bool is_met(struct figures f, double most)
{
	return f.ratio <= most || f.many_us - f.few_us <= MISSES_US;
}

static void judge(const char *name, struct figures f, double most, bool is_measured)
{
	bar(name, is_measured && is_met(f, most),
	    "%.3f us with 100 live, %.3f us with 100,000: %.2f", f.few_us, f.many_us, f.ratio);
}

int main(int argc, char **argv)
{
	static struct stage stage;
	int fd;

	if (argc == 4 && !strcmp(argv[1], "process"))
		return be_process(argv);
	stage_start(&stage, "memory = 1024 GiB\ncontext = 64 MiB\n", "");
	struct board *board = shared_board(sizeof(*board), &fd);
	struct stage_tenant *tenant = stage_add_tenant(&stage, "one", 512 * GIB, 0, 0);
	struct figures large, small, without, large_without;
	bool is_measured;
	int tries = 0;
	do {
		memset(board, 0, sizeof(*board));
		is_measured = run_turns(&stage, tenant, argv[0], fd, tries ? CASES : LARGE_WITHOUT);
		large = median_of(board, LARGE);
		small = median_of(board, SMALL);
		without = median_of(board, SMALL_WITHOUT);
		large_without = median_of(board, LARGE_WITHOUT);
	} while (is_measured && (large.ratio > RATIO_MOST || !is_met(small, RATIO_MOST)) &&
		 ++tries < TRIES);
	double small_most = without.ratio > RATIO_MOST ? without.ratio : RATIO_MOST;
	double large_most = large_without.ratio > RATIO_MOST ? large_without.ratio : RATIO_MOST;
	printf("of 512 bytes without the library: %.3f us with 100 live, %.3f us with 100,000: "
	       "%.2f; tries that failed: %d\n",
	       without.few_us, without.many_us, without.ratio, tries);
	judge("free_cost of 512 bytes", small, small_most, is_measured);
	printf("of 2 MiB without the library, in the last try: %.2f\n", large_without.ratio);
	judge("free_cost of 2 MiB", large, large_most, is_measured);
	stage_stop(&stage);
	return bar_status();
}
