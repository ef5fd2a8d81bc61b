/* Busy time in buckets of 200 ms, the period of NVML's samples, counted from virtual time 0. Time must not go back. */
#pragma once

#include <stdint.h>

#define METER_BUCKET_NS 200000000ull
#define METER_BUCKETS 128

struct meter {
	uint64_t last; /* number of the newest bucket */
	uint32_t busy_ns[METER_BUCKETS];
};

/* Adds [from_ns, to_ns) as busy. */
void meter_add(struct meter *m, uint64_t from_ns, uint64_t to_ns);
/* Returns how busy a bucket was, in percent; 0 if it is no longer kept. A bucket's number is its start / METER_BUCKET_NS. */
uint32_t meter_pct(const struct meter *m, uint64_t bucket);
