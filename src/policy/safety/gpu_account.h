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
	/* since the last census that counted the task; if there is none, since the task began */
	uint64_t passed_ns;
	/* how long the container was frozen: during passed_ns or, if has_samples, since the previous sample */
	uint64_t frozen_ns;
	bool was_present, is_present; /* held memory at the interval's begin, and at its end */
	bool has_samples;             /* the driver reports samples at all */
	/*
	 * the driver reported a sample of this task since the last census, or the caller estimates the share
	 * (gpu_account_unlisted())
	 */
	bool has_sample;
	double share;    /* use in the latest sample, 0 to 1 */
	uint64_t gap_ns; /* time between the last two samples; 0: there was only one */
};

/*
 * The estimated share, 0 to 1, of each of the `unlisted` tasks, which hold GPU memory but have no sample: the driver may leave
 * out busy processes. They divide equally the part of the GPU's use (`busy`) that neither the samples (`listed`) nor the
 * tenants' charges (`tenants`) account for. 0 if that part is at most GPU_ACCOUNT_NOISE.
 */
#define GPU_ACCOUNT_NOISE 0.1
double gpu_account_unlisted(double busy, double listed, double tenants, unsigned unlisted);

/*
 * The GPU time of an interval. Only its last sample is known. The sample stands for the time since the previous sample or,
 * after a pause of the censuses or samples, for GPU_ACCOUNT_SAMPLE_NS.
 */
uint64_t gpu_account_ns(const struct gpu_account_interval *i);
