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

/* a ring that comes later than this after the change counts as missing */
#define BELL_LATE_NS UINT64_C(10000000)
/*
 * After a missing ring, the tenant is polled for this long, because its bell is not trusted. The
 * time doubles with each further miss, up to BELL_DOUBLINGS times. Misses are forgiven
 * BELL_FORGIVEN_NS after such a time ended.
 */
#define BELL_DISTRUST_NS UINT64_C(100000000)
#define BELL_DOUBLINGS 7
#define BELL_FORGIVEN_NS UINT64_C(30000000000)
/*
 * Rings beyond this rate make a tenant be polled (token bucket): a burst of BELL_BURST rings, and
 * one more per BELL_EVERY_NS.
 */
#define BELL_BURST 50
#define BELL_EVERY_NS UINT64_C(2000000)

struct bell {
	const _Atomic uint32_t *word; /* in the tenant's report */
	uint32_t heard;               /* the counter's value as last read */
	bool has_rung;
	uint64_t owed_since_ns; /* when a change was seen for which no ring has come yet; 0: none */
	uint64_t distrusted_until_ns;
	unsigned misses; /* missing rings not yet forgiven */
	/*
	 * tokens of the rate limit that are used up: BELL_EVERY_NS for each ring heard, less the
	 * time passed since
	 */
	uint64_t spent_ns;
	uint64_t spent_at_ns;
};

/* Starts the state of a bell. If its counter is not zero, the bell has rung before. */
void bell_init(struct bell *b, const _Atomic uint32_t *word);
/*
 * Reads the bell and returns true if it has rung since the last call. Call before reading the
 * tenant's slot.
 */
bool bell_hear(struct bell *b, uint64_t now_ns);
/*
 * Call after each observation. `is_owed`: the observation shows a change since the previous one
 * that needed a ring. `has_rung`: the result of bell_hear().
 */
void bell_judge(struct bell *b, uint64_t now_ns, bool is_owed, bool has_rung);
/* Whether the tenant can be relied on to ring. */
bool bell_rings(const struct bell *b, uint64_t now_ns);

/* The most bells that one sleep can wait on. */
#define BELL_MOST 127

/* The bells to wait on while asleep. */
struct bell_list {
	struct {
		const _Atomic uint32_t *word;
		uint32_t value;
	} bell[BELL_MOST];
	size_t count;
};

/* Adds a bell, with the value last heard, to the list. Returns false if the list is full. */
bool bell_list_add(struct bell_list *list, const struct bell *b);

/*
 * Whether the kernel can wait on several words (since Linux 5.16). If not, no ring wakes the
 * thread, so tenants must be polled.
 */
bool bell_is_offered(void);
/*
 * Sleeps until the deadline (CLOCK_MONOTONIC), until a bell of the list differs from the value last
 * heard, or until *own, a word of this process, differs from `own_value`. May also return early.
 * Returns true if the deadline has passed.
 */
bool bell_sleep(const struct bell_list *list, const _Atomic uint32_t *own, uint32_t own_value,
		uint64_t deadline_ns);
/* Increments *own and wakes the thread that sleeps on it. Any thread may call it. */
void bell_wake(_Atomic uint32_t *own);
