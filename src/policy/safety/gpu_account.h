/*
 * GPU time of a task without the library between two censuses: by the driver's samples, else by presence (it holds GPU
 * memory), which Algorithm 1 of Gil et al. counts (docs/reference/seeds.md). Time in which its container was frozen does
 * not count. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPU_ACCOUNT_SAMPLE_NS UINT64_C(200000000) /* time that a sample of the driver covers */

struct gpu_account_interval {
	uint64_t passed_ns; /* time since the last counted census */
	/* how long the container was frozen in passed_ns; with samples, since the last sample */
	uint64_t frozen_ns;
	bool was_present, is_present; /* held memory at the interval's begin, and at its end */
	bool has_samples;             /* the driver reports samples at all */
	bool has_sample; /* the driver reported a sample of this task since the last census */
	double share;    /* use in the latest sample, 0 to 1 */
	uint64_t gap_ns; /* time between that sample and the one before; 0: there was none before */
};

/*
 * Share of each of `unlisted` tasks, since the driver may leave busy processes out (one of two on an H200, driver 580): the
 * card's use beyond samples and tenants' charges, in equal parts; 0 for GPU_ACCOUNT_NOISE or less.
 */
#define GPU_ACCOUNT_NOISE 0.1
double gpu_account_unlisted(double busy, double listed, double tenants, unsigned unlisted);

/*
 * A sample stands for the time since the one before, while censuses and samples follow each other (of several, the last is
 * known); after a pause for GPU_ACCOUNT_SAMPLE_NS.
 */
uint64_t gpu_account_ns(const struct gpu_account_interval *i);
