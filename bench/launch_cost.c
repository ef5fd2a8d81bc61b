/* The cost of a launch and an allocation to the caller: bursts of empty kernels, fewer than the driver
 * queues (so that no launch waits for the GPU), with a synchronization outside the clock between
 * them; and pairs of cuMemAlloc and cuMemFree.
 *
 * bench/run starts it natively and in a tenant by turns and compares the medians. That is coarse (one
 * process differs from the next by hundreds of nanoseconds), so a tenant's process also compares with
 * itself: bursts through the function that it was given, and by turns bursts through the driver's own,
 * found in libcuda's symbol table behind the interposer's back. The thread is kept on the processor
 * where it finds itself; a helper thread of someone else's in this process is not.
 */
#include "by_turns.h"
#include "library/loader/elf_lookup.h"
#include "load/clock.h"
#include "load/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCHES 512 /* a burst; the driver blocks a launch at about 1,024 */
#define PAIRS 16     /* a burst */
#define PAIR_BYTES ((size_t)1 << 20)
#define BURSTS_MAX 100000
#define ERROR_PART 0.0004 /* of a launch's time: about a nanosecond */

static const char ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
			  ".visible .entry allot_sim_1us_1b() { ret; }\n";

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Sorts the values. */
static double quantile(double *values, size_t count, double part)
{
	qsort(values, count, sizeof values[0], compare_doubles);
	return values[(size_t)((double)(count - 1) * part)];
}

/* Nanoseconds a launch in one burst. */
static double time_burst(const struct driver *d, CUfunction f, CUstream s)
{
	uint64_t begin_ns = clock_now_ns();
	for (unsigned n = 0; n < LAUNCHES; n++)
		DRIVER_DO(d, launch, f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL);
	double ns = (double)(clock_now_ns() - begin_ns) / LAUNCHES;
	DRIVER_DO(d, stream_sync, s);
	return ns;
}

/* The same in each of `bursts` bursts. */
static void time_launches(const struct driver *d, CUfunction f, double *ret_ns, unsigned bursts)
{
	CUstream s;
	DRIVER_DO(d, stream_create, &s, DRIVER_STREAM_NON_BLOCKING);
	for (unsigned i = 0; i < bursts; i++)
		ret_ns[i] = time_burst(d, f, s);
	DRIVER_DO(d, stream_destroy, s);
}

/* The two ways of a launch: through the interposer, and through the driver itself. */
struct ways {
	struct driver each[2];
	CUfunction function;
	CUstream stream;
};

static double time_way(bool is_native, void *context)
{
	const struct ways *w = context;
	return time_burst(&w->each[is_native], w->function, w->stream);
}

/* The extra cost of a launch through the interposer, into the default stream or another: zeros without an interposer. */
static struct by_turns time_added(const struct driver *d, CUfunction f, unsigned bursts,
				  bool is_default)
{
	struct ways w = { .each = { *d, *d }, .function = f };
	struct elf_object library;
	void *address = elf_find_object("libcuda.so.1", &library)
				? elf_symbol(&library, "cuLaunchKernel")
				: NULL;
	if (address == NULL || address == (void *)d->launch)
		return (struct by_turns){ 0 };
	memcpy(&w.each[true].launch, &address, sizeof address);

	if (!is_default)
		DRIVER_DO(d, stream_create, &w.stream, DRIVER_STREAM_NON_BLOCKING);
	struct by_turns r = by_turns_measure(bursts, ERROR_PART, time_way, &w);
	if (w.stream != NULL)
		DRIVER_DO(d, stream_destroy, w.stream);
	return r;
}

static void time_pairs(const struct driver *d, double *ret_ns, unsigned bursts)
{
	for (unsigned i = 0; i < bursts; i++) {
		uint64_t begin_ns = clock_now_ns();
		for (unsigned n = 0; n < PAIRS; n++) {
			CUdeviceptr p;
			DRIVER_DO(d, mem_alloc, &p, PAIR_BYTES);
			DRIVER_DO(d, mem_free, p);
		}
		ret_ns[i] = (double)(clock_now_ns() - begin_ns) / PAIRS;
	}
}

int main(int argc, char **argv)
{
	unsigned bursts = 300;
	if (argc == 3 && strcmp(argv[1], "--bursts") == 0)
		bursts = (unsigned)strtoul(argv[2], NULL, 10);
	else if (argc != 1)
		bursts = 0;
	if (bursts < 1 || bursts > BURSTS_MAX) {
		fprintf(stderr, "usage: launch-cost [--bursts N], 1 to %d\n", BURSTS_MAX);
		return 2;
	}

	double *ns = calloc(bursts, sizeof *ns);
	if (ns == NULL)
		return 1;
	struct driver driver;
	CUmodule module;
	CUfunction empty;
	driver_open(&driver);
	DRIVER_DO(&driver, module_load, &module, ptx);
	DRIVER_DO(&driver, module_function, &empty, module, "allot_sim_1us_1b");
	/* After the context was made, so that threads that came with it stay free to run elsewhere. */
	by_turns_stay_on_processor();

	time_launches(&driver, empty, ns, bursts < 20 ? bursts : 20); /* clocks and caches warm */
	time_launches(&driver, empty, ns, bursts);
	double launch_ns = quantile(ns, bursts, 0.5), launch_low_ns = quantile(ns, bursts, 0.1);
	struct by_turns added = time_added(&driver, empty, bursts, false);
	struct by_turns added_default = time_added(&driver, empty, bursts, true);
	time_pairs(&driver, ns, bursts);
	double pair_ns = quantile(ns, bursts, 0.5), pair_low_ns = quantile(ns, bursts, 0.1);
	printf("{\"launch_ns_median\":%.1f,\"launch_ns_p10\":%.1f,\"launch_added_ns\":%.1f,"
	       "\"launch_added_error_ns\":%.1f,\"default_added_ns\":%.1f,\"default_added_error_"
	       "ns\":%.1f,"
	       "\"alloc_free_ns_median\":%.1f,\"alloc_free_ns_p10\":%.1f,\"bursts\":%u}\n",
	       launch_ns, launch_low_ns, added.added_ns, added.error_ns, added_default.added_ns,
	       added_default.error_ns, pair_ns, pair_low_ns, bursts);
	free(ns);
	driver_close(&driver);
	return 0;
}
