#include "report.h"

#include <stdio.h>
#include <stdlib.h>

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

void report_end(struct run *r, uint64_t end_ns, const struct refusal *refusal,
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

void report_calibration(const struct kernel *k, const struct options *o)
{
	if (o->json)
		printf("{\"iters\":%u,\"kernel_s\":%.9f,\"blocks\":%u,\"simulated\":%s}\n",
		       k->iters, k->cost_s, k->blocks, k->simulated ? "true" : "false");
	else
		printf("iters %u: %.6f s a kernel of %u blocks%s\n", k->iters, k->cost_s, k->blocks,
		       k->simulated ? " (simulated GPU, nothing to calibrate)" : "");
}
