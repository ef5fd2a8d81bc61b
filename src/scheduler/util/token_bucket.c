#include "scheduler/util/token_bucket.h"

#include "base/clock.h"

uint64_t token_bucket_take(struct token_bucket *a, uint64_t work, uint64_t now_ns)
{
	if (!a->per_second)
		return 0;
	/* A bucket that is full at full_ns is empty one second earlier, because it holds a second's worth. */
	if (a->full_ns >= now_ns + NSEC_PER_SEC)
		return a->full_ns - (now_ns + NSEC_PER_SEC) + 1;
	if (a->full_ns < now_ns)
		a->full_ns = now_ns;
	a->full_ns += (uint64_t)((double)work * (double)NSEC_PER_SEC / (double)a->per_second);
	return 0;
}
