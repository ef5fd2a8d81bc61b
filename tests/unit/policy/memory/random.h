/* Random numbers for tests: the same seed gives the same numbers on every machine. */
#pragma once

#include <stdint.h>

/* splitmix64: any seed will do. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Both ends included. */
static inline uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high)
{
	return low + random_next(state) % (high - low + 1);
}
