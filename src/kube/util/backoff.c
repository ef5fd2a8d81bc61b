#include "kube/util/backoff.h"

#include <sys/random.h>

#include "base/clock.h"

#define FIRST_NS (200 * NSEC_PER_MSEC)
#define MOST_NS (BACKOFF_MAX_S * NSEC_PER_SEC)

uint32_t backoff_random(void)
{
	uint32_t bits;
	if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits))
		bits = (uint32_t)clock_now_ns();
	return bits;
}

uint64_t backoff_next_ns(struct backoff *backoff, uint64_t at_least_ns)
{
	return backoff_from_random_ns(backoff, backoff_random(), at_least_ns);
}

uint64_t backoff_from_random_ns(struct backoff *backoff, uint32_t random, uint64_t at_least_ns)
{
	uint64_t due_ns = FIRST_NS;
	for (unsigned i = 0; i < backoff->failures && due_ns < MOST_NS; i++)
		due_ns *= 2;
	if (due_ns >= MOST_NS)
		due_ns = MOST_NS;
	else
		backoff->failures++;
	uint64_t wait_ns = due_ns / 2 + (uint64_t)((double)(due_ns / 2) * (random / 4294967295.0));
	return wait_ns > at_least_ns ? wait_ns : at_least_ns;
}
