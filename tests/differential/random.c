#include "calls.h"

static uint64_t state;

void random_seed(uint64_t seed)
{
	state = seed;
}

uint64_t random_below(uint64_t n)
{
	/* splitmix64 */
	uint64_t x = state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (x ^ x >> 31) % n;
}
