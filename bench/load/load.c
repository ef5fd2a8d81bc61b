/* allot-load: the load of all share experiments. It launches kernels of known
 * cost as fast as they are taken, and reports the work done: a share computed
 * from work can't be wrong the way a utilization counter can.
 *
 * By hand, here: cc -std=c11 -D_GNU_SOURCE -O2 -I../../src -o allot-load *.c -ldl -lm -pthread
 */
#include "clock.h"
#include "driver.h"
#include "kernel.h"
#include "lanes.h"
#include "latency.h"
#include "options.h"
#include "sampler.h"
#include "trace.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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
	struct sampler sampler;
	struct latency latency;
	struct trace trace;
	uint64_t begin_ns;
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

static void print_refusal(const struct refusal *refusal, const struct driver *d)
{
	if (refusal->tried && refusal->result != CUDA_SUCCESS)
		printf(",\"refused\":{\"asked_bytes\":%zu,\"error\":\"%s\"}", refusal->asked_bytes,
		       driver_error_name(d, refusal->result));
	else
		printf(",\"refused\":null");
}

static void print_latency(struct latency *l, bool json)
{
	static const double pct[] = { 50, 90, 99, 100 };
	static const char *const name[] = { "p50", "p90", "p99", "max" };
	printf(json ? ",\"latency_ms\":{\"count\":%u" : "latency of %u bursts, ms:", l->count);
	for (size_t i = 0; i < sizeof pct / sizeof pct[0]; i++)
		printf(json ? ",\"%s\":%.4f" : "  %s %.3f", name[i],
		       (double)latency_percentile(l, pct[i]) / 1e6);
	printf(json ? "}" : "\n");
}

static void print_phases(const struct trace *t)
{
	printf(",\"phases\":[");
	for (unsigned i = 0; i < t->count; i++) {
		const struct trace_phase *p = &t->phase[i];
		printf("%s{\"begin_s\":%.4f,\"end_s\":%.4f", i > 0 ? "," : "",
		       (double)p->begin_ns / 1e9, (double)p->end_ns / 1e9);
		if (p->first_ns > 0)
			printf(",\"first_ms\":%.4f", (double)p->first_ns / 1e6);
		printf("}");
	}
	printf("]");
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
		if (r->options->burst > 0)
			print_latency(&r->latency, false);
		return;
	}
	printf("{");
	if (r->sampler.id >= 0)
		printf("\"id\":%d,", r->sampler.id);
	printf("\"kernels\":%llu,\"kernel_s\":%.9f,\"elapsed_s\":%.6f,\"work_s\":%.6f,"
	       "\"share_pct\":%.3f,\"launch_ns_median\":%u,\"iters\":%u,\"simulated\":%s",
	       kernels, r->kernel->cost_s, elapsed_s, work_s, share_pct, launch_ns,
	       r->kernel->iters, r->kernel->simulated ? "true" : "false");
	if (r->options->burst > 0)
		print_latency(&r->latency, true);
	if (r->options->trace != NULL)
		print_phases(&r->trace);
	print_refusal(refusal, d);
	printf("}\n");
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

static bool is_over(const struct run *r)
{
	return interrupted || clock_now_ns() - r->begin_ns >= (uint64_t)(r->options->seconds * 1e9);
}

/* Sleeps until then, or the end of the run. */
static void sleep_until(const struct run *r, uint64_t at_ns)
{
	while (!is_over(r)) {
		uint64_t now_ns = clock_now_ns();
		if (now_ns >= at_ns)
			return;
		clock_nap_ns(at_ns - now_ns < NS_PER_S / 10 ? at_ns - now_ns : NS_PER_S / 10);
	}
}

/* As many kernels as are taken, until end_ns or the end of the run. */
static void saturate(struct run *r, uint64_t end_ns)
{
	uint64_t sync_every = (uint64_t)r->options->sync_every;
	while (!is_over(r) && clock_now_ns() < end_ns) {
		uint64_t took_ns = lanes_launch(&r->lanes);
		if (took_ns == 0) {
			clock_nap_ns(lanes_nap_ns(&r->lanes));
		} else {
			r->samples_ns[r->sample_count++ % SAMPLE_MAX] = took_ns < UINT32_MAX
										? (uint32_t)took_ns
										: UINT32_MAX;
			if (sync_every > 0 && r->sample_count % sync_every == 0)
				lanes_sync(&r->lanes);
		}
		lanes_collect(&r->lanes);
	}
}

/* A burst that is late delays the next ones, and they are late as well: what waited
 * for its turn counts, as it would for whoever sent the request. */
static void answer_requests(struct run *r)
{
	uint64_t period_ns = (uint64_t)(r->options->period_ms * 1e6);
	for (uint64_t due_ns = r->begin_ns;; due_ns += period_ns) {
		sleep_until(r, due_ns);
		if (is_over(r))
			return;
		lanes_burst(&r->lanes, (unsigned)r->options->burst);
		if (due_ns - r->begin_ns >= (uint64_t)(r->options->warmup_s * 1e9))
			latency_add(&r->latency, clock_now_ns() - due_ns);
	}
}

static void follow_trace(struct run *r)
{
	for (unsigned i = 0; i < r->trace.count && !is_over(r); i++) {
		struct trace_phase *p = &r->trace.phase[i];
		uint64_t begin_ns = r->begin_ns + p->begin_ns;
		sleep_until(r, begin_ns);
		lanes_sync(&r->lanes); /* the last of the phase before are not this one's first */
		lanes_await_first(&r->lanes);
		saturate(r, r->begin_ns + p->end_ns);
		uint64_t first_ns = lanes_first_done_ns(&r->lanes);
		p->first_ns = first_ns > begin_ns ? first_ns - begin_ns : 0;
	}
	sleep_until(r, UINT64_MAX);
}

/* Returns when the time is over, with what had been finished by then counted. */
static uint64_t drive(struct run *r, int id)
{
	const struct options *o = r->options;
	r->begin_ns = clock_now_ns();
	r->sampler = (struct sampler){ .lanes = &r->lanes,
				       .begin_ns = r->begin_ns,
				       .every_ns = (uint64_t)(o->report_every_s * 1e9),
				       .id = id,
				       .json = o->json };
	sampler_start(&r->sampler);
	if (o->burst > 0)
		answer_requests(r);
	else if (o->trace != NULL)
		follow_trace(r);
	else
		saturate(r, UINT64_MAX);
	lanes_collect(&r->lanes);
	uint64_t end_ns = clock_now_ns();
	sampler_stop(&r->sampler);
	return end_ns;
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

static int work(const struct options *options, int id)
{
	static struct run run; /* large: not on the stack */
	struct driver driver;
	struct kernel kernel;
	struct refusal refusal = { 0 };
	CUdeviceptr held = 0;

	if (options->trace != NULL)
		trace_read(&run.trace, options->trace, (unsigned)options->trace_row);
	driver_open(&driver);
	kernel_load(&kernel, &driver, (unsigned)options->kernel_us, (unsigned)options->blocks,
		    (uint32_t)options->iters);
	kernel.cooperative = options->cooperative;
	if (options->calibrate_only) {
		print_calibration(&kernel, options);
		driver_close(&driver);
		return 0;
	}
	if (options->mib > 0)
		DRIVER_DO(&driver, mem_alloc, &held, (size_t)options->mib << 20);
	if (options->alloc_over)
		try_too_much(&driver, &refusal, options->json);

	run.options = options;
	run.kernel = &kernel;
	lanes_open(&run.lanes, &driver, &kernel, (unsigned)options->streams, options->graph);
	wait_until(options->start_at_s);
	uint64_t end_ns = drive(&run, id);
	report_end(&run, end_ns, &refusal, &driver);
	fflush(stdout); /* the line must be out even if a shared GPU never lets this end */

	lanes_close(&run.lanes);
	if (held != 0)
		DRIVER_DO(&driver, mem_free, held);
	driver_close(&driver);
	return ferror(stdout) ? 1 : 0;
}

/* One child each, before any of them knows the driver: CUDA does not survive a fork. */
static int work_in_children(const struct options *options)
{
	int failed = 0, status;
	pid_t children[64], pid;
	unsigned count = (unsigned)options->processes;
	for (unsigned i = 0; i < count; i++) {
		children[i] = fork();
		if (children[i] < 0) {
			perror("allot-load: fork");
			exit(1);
		}
		if (children[i] == 0)
			exit(work(options, (int)i));
	}
	while ((pid = wait(&status)) > 0 || errno == EINTR) {
		if (pid > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
			failed = 1;
		else if (pid < 0 && interrupted)
			for (unsigned i = 0; i < count; i++)
				kill(children[i], SIGTERM);
	}
	return failed;
}

int main(int argc, char **argv)
{
	struct options options;
	options_parse(&options, argc, argv);
	struct sigaction act = { .sa_handler = on_signal };
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	return options.processes > 1 ? work_in_children(&options) : work(&options, -1);
}
