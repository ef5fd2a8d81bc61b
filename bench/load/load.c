/* allot-load: the load of all share experiments. It launches kernels of known
 * cost as fast as they are taken, and reports the work done: a share computed
 * from work can't be wrong the way a utilization counter can.
 *
 * By hand, here: cc -std=c11 -D_GNU_SOURCE -O2 -I../../src -o allot-load *.c -ldl -lm
 */
#include "clock.h"
#include "driver.h"
#include "kernel.h"
#include "lanes.h"
#include "options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* The newest so many launch times: enough for a median, and a fixed size. */
#define SAMPLE_MAX 65536

struct refusal {
	bool tried;
	size_t asked_bytes;
	CUresult result;
};

struct run {
	const struct options *options;
	const struct kernel *kernel;
	struct lanes lanes;
	uint64_t begin_ns;
	uint64_t reported_ns;      /* when the last report was */
	uint64_t reported_kernels; /* how many were done then */
	uint32_t samples_ns[SAMPLE_MAX];
	uint64_t sample_count;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static double seconds_since(uint64_t begin_ns, uint64_t now_ns)
{
	return (double)(now_ns - begin_ns) / 1e9;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static uint32_t median_launch_ns(struct run *r)
{
	size_t n = r->sample_count < SAMPLE_MAX ? (size_t)r->sample_count : SAMPLE_MAX;
	if (n == 0)
		return 0;
	qsort(r->samples_ns, n, sizeof r->samples_ns[0], compare_u32);
	return r->samples_ns[n / 2];
}

/* What was done since the last report. Its own two times bound the interval,
 * so a report that comes late (a launch was held back) is still exact. */
static void report_interval(struct run *r, uint64_t now_ns)
{
	uint64_t kernels = r->lanes.done_kernels - r->reported_kernels;
	double work_s = (double)kernels * r->kernel->cost_s;
	double t_s = seconds_since(r->begin_ns, now_ns);
	if (r->options->json)
		printf("{\"t_s\":%.4f,\"kernels\":%llu,\"work_s\":%.6f}\n", t_s,
		       (unsigned long long)kernels, work_s);
	else
		printf("%8.2f s  %8llu kernels  %6.2f %%\n", t_s, (unsigned long long)kernels,
		       100 * work_s / seconds_since(r->reported_ns, now_ns));
	fflush(stdout);
	r->reported_ns = now_ns;
	r->reported_kernels = r->lanes.done_kernels;
}

static void report_end(struct run *r, uint64_t end_ns, const struct refusal *refusal,
		       const struct driver *d)
{
	double elapsed_s = seconds_since(r->begin_ns, end_ns);
	double work_s = (double)r->lanes.done_kernels * r->kernel->cost_s;
	double share_pct = elapsed_s > 0 ? 100 * work_s / elapsed_s : 0;
	unsigned long long kernels = r->lanes.done_kernels;
	uint32_t launch_ns = median_launch_ns(r);
	if (!r->options->json) {
		printf("%llu kernels of %.6f s in %.3f s: %.2f %% of the GPU; a launch took %u "
		       "ns\n",
		       kernels, r->kernel->cost_s, elapsed_s, share_pct, launch_ns);
		return;
	}
	printf("{\"kernels\":%llu,\"kernel_s\":%.9f,\"elapsed_s\":%.6f,\"work_s\":%.6f,"
	       "\"share_pct\":%.3f,\"launch_ns_median\":%u,\"iters\":%u,\"simulated\":%s,"
	       "\"refused\":",
	       kernels, r->kernel->cost_s, elapsed_s, work_s, share_pct, launch_ns,
	       r->kernel->iters, r->kernel->simulated ? "true" : "false");
	if (refusal->tried && refusal->result != CUDA_SUCCESS)
		printf("{\"asked_bytes\":%zu,\"error\":\"%s\"}}\n", refusal->asked_bytes,
		       driver_error_name(d, refusal->result));
	else
		printf("null}\n");
}

static void try_too_much(const struct driver *d, struct refusal *ret, bool json)
{
	size_t free_bytes, total_bytes;
	CUdeviceptr p;
	DRIVER_DO(d, mem_info, &free_bytes, &total_bytes);
	driver_need(d, offsetof(struct driver, mem_alloc));
	size_t asked_bytes = total_bytes + ((size_t)64 << 20);
	CUresult r = d->mem_alloc(&p, asked_bytes);
	if (r == CUDA_SUCCESS)
		DRIVER_DO(d, mem_free, p);
	*ret = (struct refusal){ .tried = true, .asked_bytes = asked_bytes, .result = r };
	if (!json || r == CUDA_SUCCESS)
		fprintf(stderr, "allot-load: cuMemAlloc of %zu bytes, total %zu: %s\n", asked_bytes,
			total_bytes,
			r == CUDA_SUCCESS ? "granted, not refused" : driver_error_name(d, r));
}

static void wait_until(double unix_s)
{
	while (!interrupted) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		double left_s = unix_s - (double)now.tv_sec - (double)now.tv_nsec / 1e9;
		if (left_s <= 0)
			return;
		/* In steps: the wall clock may be set meanwhile. */
		clock_nap_ns((uint64_t)((left_s < 0.1 ? left_s : 0.1) * 1e9) + 1);
	}
}

/* Returns when the time is over, with what had been finished by then counted. */
static uint64_t drive(struct run *r)
{
	const struct options *o = r->options;
	uint64_t length_ns = (uint64_t)(o->seconds * 1e9);
	uint64_t every_ns = (uint64_t)(o->report_every_s * 1e9);
	uint64_t sync_every = (uint64_t)o->sync_every, launches = 0;
	uint64_t next_report_ns = every_ns;

	r->begin_ns = r->reported_ns = clock_now_ns();
	for (;;) {
		uint64_t took_ns = lanes_launch(&r->lanes);
		if (took_ns == 0) {
			clock_nap_ns(lanes_nap_ns(&r->lanes));
		} else {
			r->samples_ns[r->sample_count++ % SAMPLE_MAX] = took_ns < UINT32_MAX
										? (uint32_t)took_ns
										: UINT32_MAX;
			if (sync_every > 0 && ++launches % sync_every == 0)
				lanes_sync(&r->lanes);
		}
		lanes_collect(&r->lanes);

		uint64_t now_ns = clock_now_ns(), passed_ns = now_ns - r->begin_ns;
		bool over = passed_ns >= length_ns || interrupted;
		if (every_ns > 0 && (passed_ns >= next_report_ns || over)) {
			report_interval(r, now_ns);
			while (next_report_ns <= passed_ns)
				next_report_ns += every_ns;
		}
		if (over)
			return now_ns;
	}
}

static void print_calibration(const struct kernel *k, const struct options *o)
{
	if (o->json)
		printf("{\"iters\":%u,\"kernel_s\":%.9f,\"blocks\":%u,\"simulated\":%s}\n",
		       k->iters, k->cost_s, k->blocks, k->simulated ? "true" : "false");
	else
		printf("iters %u: %.6f s a kernel of %u blocks%s\n", k->iters, k->cost_s, k->blocks,
		       k->simulated ? " (simulated GPU, nothing to calibrate)" : "");
}

int main(int argc, char **argv)
{
	static struct run run; /* large: not on the stack */
	struct options options;
	struct driver driver;
	struct kernel kernel;
	struct refusal refusal = { 0 };
	CUdeviceptr held = 0;

	options_parse(&options, argc, argv);
	struct sigaction act = { .sa_handler = on_signal };
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);

	driver_open(&driver);
	kernel_load(&kernel, &driver, (unsigned)options.kernel_us, (unsigned)options.blocks,
		    (uint32_t)options.iters);
	if (options.calibrate_only) {
		print_calibration(&kernel, &options);
		driver_close(&driver);
		return 0;
	}
	if (options.mib > 0)
		DRIVER_DO(&driver, mem_alloc, &held, (size_t)options.mib << 20);
	if (options.alloc_over)
		try_too_much(&driver, &refusal, options.json);

	run.options = &options;
	run.kernel = &kernel;
	lanes_open(&run.lanes, &driver, &kernel, (unsigned)options.streams, options.graph);
	wait_until(options.start_at_s);
	uint64_t end_ns = drive(&run);
	report_end(&run, end_ns, &refusal, &driver);
	fflush(stdout); /* the line must be out even if a shared GPU never lets this end */

	lanes_close(&run.lanes);
	if (held != 0)
		DRIVER_DO(&driver, mem_free, held);
	driver_close(&driver);
	return ferror(stdout) ? 1 : 0;
}
