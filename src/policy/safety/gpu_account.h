/*
 * The GPU time that a task without the library is charged for the time between two polls of the processes (censuses). If the
 * driver samples its use, the charge follows the samples. Otherwise it follows the task's presence, that is, whether it holds
 * GPU memory, which Algorithm 1 of Gil et al. counts (docs/reference/seeds.md). Time in which its container was frozen does not
 * count. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPU_ACCOUNT_SAMPLE_NS UINT64_C(200000000) /* time that a sample of the driver covers */

struct gpu_account_interval {
	uint64_t passed_ns; /* time since the last census that was counted */
	/* how long the container was frozen in passed_ns; with samples, since the last sample */
	uint64_t frozen_ns;
	bool was_present, is_present; /* held memory at the interval's begin, and at its end */
	bool has_samples;             /* the driver reports samples at all */
	bool has_sample; /* the driver reported a sample of this task since the last census */
	double share;    /* use in the latest such sample, 0 to 1 */
	uint64_t gap_ns; /* time between that sample and the one before; 0 if there was none before */
};

/*
 * Returns the share that each of `unlisted` tasks is taken to have had. The driver may leave a busy process out of its samples
 * (one of two, on an H200 with driver 580). The card's use beyond the samples and beyond the tenants' charges is divided
 * equally among the unlisted tasks. A use of GPU_ACCOUNT_NOISE or less is noise, so the result is then 0.
 */
#define GPU_ACCOUNT_NOISE 0.1
double gpu_account_unlisted(double busy, double listed, double tenants, unsigned unlisted);

/*
 * Returns the GPU time of the interval. A sample stands for the time since the sample before, as long as censuses and samples
 * follow each other: of several samples between two censuses only the last is known. After a pause a sample stands for
 * GPU_ACCOUNT_SAMPLE_NS.
 */
uint64_t gpu_account_ns(const struct gpu_account_interval *i);
