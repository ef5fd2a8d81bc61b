/*
 * How much GPU time a task without the library is charged between two censuses: by the driver's sample of
 * its use where there is one, else by its presence (it holds memory: what Algorithm 1 of Gil et al.
 * counts, docs/reference/seeds.md). Time in which its container was frozen does not count. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPU_ACCOUNT_SAMPLE_NS UINT64_C(200000000) /* what a sample of the driver is over */

struct gpu_account_interval {
	uint64_t passed_ns; /* since the last census that was counted */
	/* For how long its container was frozen since then; with samples: since the last of them. */
	uint64_t frozen_ns;
	bool was_present, is_present; /* held memory at its begin, and at its end */
	bool has_samples;             /* the driver tells of use at all */
	bool has_sample;              /* and of this task, since the last census */
	double share;                 /* 0 to 1, in the last such sample, ... */
	uint64_t gap_ns;              /* ... so long after its sample before; 0: there was none */
};

/*
 * A sample stands for the time since the one before, as long as censuses and samples follow each other: of
 * several between two censuses the last one is known. After a pause it stands for itself.
 */
/*
 * What each of `unlisted` tasks is taken to have had, as a share: the driver may leave a busy process out
 * of its samples (one of two, on an H200 with driver 580). What the card did beyond the samples that there
 * are, and what tenants were charged, is theirs in equal parts. Little of it is noise: 0.
 */
#define GPU_ACCOUNT_NOISE 0.1
double gpu_account_unlisted(double busy, double listed, double tenants, unsigned unlisted);

uint64_t gpu_account_ns(const struct gpu_account_interval *i);
