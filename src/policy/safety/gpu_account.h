/*
 * Computes the GPU time of a task: a process with GPU work that does not use the library. Covers the time between two censuses
 * (regular lists of GPU processes). Uses the driver's samples. Without samples, counts the time in which the task held GPU
 * memory, as Algorithm 1 of Gil et al. does (docs/reference/seeds.md). Time in which its container was frozen does not count.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPU_ACCOUNT_SAMPLE_NS UINT64_C(200000000) /* time that a sample of the driver covers */

struct gpu_account_interval {
	/* time since the last census that counted the task or, at the first, since the task's begin */
	uint64_t passed_ns;
	/* time in which the container was frozen: within passed_ns or, with samples, since the last sample */
	uint64_t frozen_ns;
	bool was_present, is_present; /* held memory at the interval's begin, and at its end */
	bool has_samples;             /* the driver reports samples at all */
	bool has_sample; /* the driver reported a sample of this task since the last census */
	double share;    /* use in the latest sample, 0 to 1 */
	uint64_t gap_ns; /* time between the last two samples; 0: there was only one */
};

/*
 * Returns the share, 0 to 1, of each of `unlisted` tasks, which hold GPU memory but have no sample: the driver may leave out
 * busy processes. The card's use (`busy`), less the sum of the samples (`listed`) and what tenants were charged (`tenants`), is
 * divided equally. A remainder of GPU_ACCOUNT_NOISE or less counts as 0.
 */
#define GPU_ACCOUNT_NOISE 0.1
double gpu_account_unlisted(double busy, double listed, double tenants, unsigned unlisted);

/*
 * Returns the GPU time of an interval. Only the last sample of an interval is known. It stands for the time since the previous
 * sample or, after a pause of the censuses or samples, for GPU_ACCOUNT_SAMPLE_NS.
 */
uint64_t gpu_account_ns(const struct gpu_account_interval *i);
