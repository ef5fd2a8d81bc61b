/*
 * Busy time in buckets of 200 ms, as NVML's samples have it: the last METER_BUCKETS of them.
 * Buckets are aligned to virtual time zero. Time must not go back.
 */
#pragma once

#include <stdint.h>

#define METER_BUCKET_NS 200000000ull
#define METER_BUCKETS 128

struct meter {
	uint64_t last; /* newest bucket written */
	uint32_t busy_ns[METER_BUCKETS];
};

/* [from, to) was busy. */
void meter_add(struct meter *m, uint64_t from_ns, uint64_t to_ns);
/* Percent busy of a bucket (its number is its start / METER_BUCKET_NS); 0 where forgotten. */
uint32_t meter_pct(const struct meter *m, uint64_t bucket);
