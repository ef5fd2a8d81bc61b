/*
 * A rate limit: a token bucket that gains `per_second` units of work a second and holds a second's worth. While it is not
 * empty, a caller gets all it asks for, even more than the bucket holds; later calls wait until this debt is filled up. The
 * caller passes the time (ns), which must not go back.
 */
#pragma once

#include <stdint.h>

struct token_bucket {
	uint64_t per_second; /* 0 if there is no limit */
	/* when the bucket will be full again */
	uint64_t full_ns;
};

/* Returns 0 if `work` was taken. Otherwise returns the time in ns until the bucket is not empty. */
uint64_t token_bucket_take(struct token_bucket *bucket, uint64_t work, uint64_t now_ns);
