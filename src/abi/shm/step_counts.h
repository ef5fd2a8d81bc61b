/*
 * A histogram of the durations of a tenant's steps on one device (library/launch/step.h defines a step). All processes of the
 * tenant count in the same fields, so their steps are merged.
 *
 * A bucket is a duration in units of STEP_UNIT_NS, rounded down to its four highest bits. Each power of two from 8 on has eight
 * buckets. Their width is at most an eighth of their lower bound, except for the last bucket, which has no upper bound.
 *
 *     bucket     0  1  ...  7   8  9 ... 15   16  17 ... 23   ...   175
 *     from unit  0  1  ...  7   8  9 ... 15   16  18 ... 30   ...   15 << 20: 64 s, and everything longer
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define STEP_UNIT_NS UINT64_C(4096)
#define STEP_BUCKETS 176U

/* `count` steps, which took sum_ns in all. Written by all processes of the tenant; relaxed. All fields only grow. */
struct step_counts {
	_Alignas(64) _Atomic uint64_t count;
	_Atomic uint64_t sum_ns;
	_Atomic uint64_t bucket[STEP_BUCKETS];
};

/* Returns the bucket in which a step of `ns` counts. Pure. */
static inline unsigned step_bucket_of(uint64_t ns)
{
	uint64_t units = ns / STEP_UNIT_NS;

	if (units < 8)
		return (unsigned)units;
	unsigned octave = 60 - (unsigned)__builtin_clzll(units);
	unsigned bucket = octave * 8 + (unsigned)(units >> octave);

	return bucket < STEP_BUCKETS ? bucket : STEP_BUCKETS - 1;
}

/* Returns the shortest duration in a bucket. For STEP_BUCKETS: a nominal end of the last bucket. Pure. */
static inline uint64_t step_bucket_from_ns(unsigned bucket)
{
	return bucket < 8 ? bucket * STEP_UNIT_NS
			  : ((uint64_t)(8 + bucket % 8) << (bucket / 8 - 1)) * STEP_UNIT_NS;
}
