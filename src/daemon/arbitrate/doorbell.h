/*
 * A doorbell is a counter in a tenant's shared-memory report. By incrementing it (a ring), the tenant wakes the arbitration of
 * a card.
 *
 *     tenant:  changes its slot, increments its doorbell, wakes the thread that waits on it
 *     daemon:  reads the doorbell (doorbell_poll), then the slot; decides; sleeps until a deadline or until the
 *              doorbell differs from the value read (doorbell_wait): no ring is lost
 *
 * A ring only makes the daemon read the slot. A tenant is trusted to ring (doorbell_is_trusted) if it has rung before and does
 * not ring too often. It is not trusted for some time after it began or ended work or demand without a ring. A tenant that is
 * not trusted is polled.
 *
 * Only doorbell_is_supported(), doorbell_wait() and doorbell_wake() make system calls. Not thread safe, except doorbell_wake().
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A ring that comes later than this after the change counts as missing. */
#define DOORBELL_LATE_NS UINT64_C(10000000)
/*
 * How long a tenant is polled after a missing ring. Doubles with each further miss, up to DOORBELL_DOUBLINGS times. All misses
 * are forgotten if the next one comes later than DOORBELL_FORGIVEN_NS after the end of this polling.
 */
#define DOORBELL_DISTRUST_NS UINT64_C(100000000)
#define DOORBELL_DOUBLINGS 7
#define DOORBELL_FORGIVEN_NS UINT64_C(30000000000)
/*
 * A tenant is polled if it rings more often than this token bucket allows: DOORBELL_BURST rings at once, and one more per
 * DOORBELL_EVERY_NS.
 */
#define DOORBELL_BURST 50
#define DOORBELL_EVERY_NS UINT64_C(2000000)

struct doorbell {
	const _Atomic uint32_t *word; /* in the tenant's report */
	uint32_t seen_value;          /* the counter's value as last read */
	bool has_rung;
	uint64_t missing_since_ns; /* time of a change for which no ring has come yet; 0: none */
	uint64_t distrusted_until_ns;
	unsigned misses; /* missing rings that are not forgiven yet */
	/* used part of the token bucket, in ns */
	uint64_t spent_ns;
	uint64_t spent_at_ns;
};

/* Starts with the present value of the counter `word`. If that is above zero, the tenant has rung before. */
void doorbell_init(struct doorbell *b, const _Atomic uint32_t *word);
/* Returns true if the doorbell has rung since the last call. Call before reading the tenant's slot. */
bool doorbell_poll(struct doorbell *b, uint64_t now_ns);
/*
 * Checks whether a ring is missing. After a missing ring, the tenant is not trusted for some time. Call after each observation
 * of the tenant's slot. `must_ring`: the observation shows a change that needed a ring. `has_rung`: from doorbell_poll().
 */
void doorbell_check(struct doorbell *b, uint64_t now_ns, bool must_ring, bool has_rung);
/* Returns true if the tenant can be relied on to ring. */
bool doorbell_is_trusted(const struct doorbell *b, uint64_t now_ns);

/* Maximum number of doorbells on which one thread can wait. If a card has more tenants, all of them are polled. */
#define DOORBELL_LIST_MAX 127

struct doorbell_list {
	struct {
		const _Atomic uint32_t *word;
		uint32_t value;
	} entry[DOORBELL_LIST_MAX];
	size_t count;
};

/* Adds a doorbell, with the value last read. Returns false if the list is full. */
bool doorbell_list_add(struct doorbell_list *list, const struct doorbell *b);

/* Returns true if the kernel can wait on several words (Linux 5.16). If not, tenants must be polled. */
bool doorbell_is_supported(void);
/*
 * Sleeps until the deadline (CLOCK_MONOTONIC) has passed, a doorbell of the list rings, or *own differs from own_value. May
 * return early. Returns true if the deadline has passed.
 */
bool doorbell_wait(const struct doorbell_list *list, const _Atomic uint32_t *own,
		   uint32_t own_value, uint64_t deadline_ns);
/* Increments *own and wakes the thread that sleeps on it. Thread safe. */
void doorbell_wake(_Atomic uint32_t *own);
