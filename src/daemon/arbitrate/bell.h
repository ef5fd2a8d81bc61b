/*
 * A doorbell ("bell") wakes the arbitration of a card. It is a counter in the tenant's report.
 *
 *     tenant:  changes its slot, increments its bell, wakes the thread that waits on the bell
 *     daemon:  reads the bell (bell_hear), then the slot; decides; sleeps until a deadline or until the
 *              bell differs from the value read (bell_sleep): no ring is lost
 *
 * The counter is in the tenant's own report, so a ring does not disturb other tenants. A ring only
 * makes the daemon read the slot. A tenant is trusted to ring (bell_rings) if it has rung before,
 * is not ignored for ringing too often, and was not seen to begin or end work or demand without a
 * ring. Any other tenant is polled.
 *
 * Pure except bell_sleep and the functions that it uses. Not thread safe, except bell_wake.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A ring that is later than this after the change counts as missing. */
#define BELL_LATE_NS UINT64_C(10000000)
/*
 * How long a tenant is polled after a missing ring. Doubles with each further miss, up to BELL_DOUBLINGS times. Misses are
 * forgiven BELL_FORGIVEN_NS after such a time ended.
 */
#define BELL_DISTRUST_NS UINT64_C(100000000)
#define BELL_DOUBLINGS 7
#define BELL_FORGIVEN_NS UINT64_C(30000000000)
/*
 * A tenant is polled if it rings more often than this token bucket allows: BELL_BURST rings at once, and one more per
 * BELL_EVERY_NS.
 */
#define BELL_BURST 50
#define BELL_EVERY_NS UINT64_C(2000000)

struct bell {
	const _Atomic uint32_t *word; /* in the tenant's report */
	uint32_t heard;               /* the counter's value as last read */
	bool has_rung;
	uint64_t owed_since_ns; /* time of a change for which no ring has come yet; 0: none */
	uint64_t distrusted_until_ns;
	unsigned misses; /* missing rings that are not forgiven yet */
	/* used part of the token bucket, in ns */
	uint64_t spent_ns;
	uint64_t spent_at_ns;
};

/* Starts the state of a bell. A counter above zero shows that the bell has rung before. */
void bell_init(struct bell *b, const _Atomic uint32_t *word);
/* Returns true if the bell has rung since the last call. Call before reading the tenant's slot. */
bool bell_hear(struct bell *b, uint64_t now_ns);
/* Call after each observation. `is_owed`: it shows a change that needed a ring. `has_rung`: from bell_hear(). */
void bell_judge(struct bell *b, uint64_t now_ns, bool is_owed, bool has_rung);
/* Returns true if the tenant can be relied on to ring. */
bool bell_rings(const struct bell *b, uint64_t now_ns);

/* Most bells on which one sleep can wait. */
#define BELL_MOST 127

struct bell_list {
	struct {
		const _Atomic uint32_t *word;
		uint32_t value;
	} bell[BELL_MOST];
	size_t count;
};

/* Adds a bell, with the value last heard. Returns false if the list is full. */
bool bell_list_add(struct bell_list *list, const struct bell *b);

/* Returns true if the kernel can wait on several words (Linux 5.16). If not, tenants must be polled. */
bool bell_is_offered(void);
/*
 * Sleeps until the deadline (CLOCK_MONOTONIC), a bell of the list rings, or *own differs from own_value. May return early.
 * Returns true if the deadline has passed.
 */
bool bell_sleep(const struct bell_list *list, const _Atomic uint32_t *own, uint32_t own_value,
		uint64_t deadline_ns);
/* Increments *own and wakes the thread that sleeps on it. Thread safe. */
void bell_wake(_Atomic uint32_t *own);
