/*
 * A bell wakes the arbitration of a card: a word in the tenant's report that the tenant counts up.
 *
 *     tenant:  changes its slot, counts its bell up, wakes the thread that waits on it
 *     daemon:  reads the bell (bell_hear), then the slot; decides; sleeps until a deadline or until the
 *              bell differs from what it read (bell_sleep): no ring is lost
 *
 * The word lies in the tenant's own report, so a ring disturbs no other tenant. It is taken as a reason to look, and no more.
 * A tenant is trusted to ring (bell_rings) if it has rung before, is not ignored for ringing too often, and was not
 * seen to begin or end work or demand without a ring. Any other is polled.
 *
 * Pure except bell_sleep and what it uses. Not thread safe, except bell_wake.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BELL_LATE_NS UINT64_C(10000000) /* a ring this long after what it tells of was none */
/* For how long it is not believed then: doubled each time, until it has rung for so long. */
#define BELL_DISTRUST_NS UINT64_C(100000000)
#define BELL_DOUBLINGS 7
#define BELL_FORGIVEN_NS UINT64_C(30000000000)
/* Rings that are listened to: so many at once, and one each so often. */
#define BELL_BURST 50
#define BELL_EVERY_NS UINT64_C(2000000)

struct bell {
	const _Atomic uint32_t *word; /* the tenant's */
	uint32_t heard;               /* as last read */
	bool has_rung;
	uint64_t owed_since_ns; /* what should have been rung for was seen; 0: nothing */
	uint64_t distrusted_until_ns;
	unsigned misses; /* that are not forgiven */
	uint64_t spent_ns; /* heard rings x BELL_EVERY_NS, less the time since: deaf above the burst */
	uint64_t spent_at_ns;
};

/* A bell that has never rung. */
void bell_init(struct bell *b, const _Atomic uint32_t *word);
/* Reads it; true when it was rung since. To be called before what the tenant shows is read. */
bool bell_hear(struct bell *b, uint64_t now_ns);
/*
 * After a look: `is_owed`: what was seen should have been rung for since the look before; `has_rung`: what
 * bell_hear() said.
 */
void bell_judge(struct bell *b, uint64_t now_ns, bool is_owed, bool has_rung);
/* Whether it may be relied on to ring. */
bool bell_rings(const struct bell *b, uint64_t now_ns);

/* The most bells that a sleep can listen to. */
#define BELL_MOST 127

/* What to listen to while asleep. */
struct bell_list {
	struct {
		const _Atomic uint32_t *word;
		uint32_t value;
	} bell[BELL_MOST];
	size_t count;
};

/* False when there is no room. */
bool bell_list_add(struct bell_list *list, const struct bell *b);

/* False where the kernel can't wait for several words (before Linux 5.16): nothing is heard then. */
bool bell_is_offered(void);
/*
 * Sleeps until the deadline (CLOCK_MONOTONIC), until a bell of the list has another value than it was
 * heard with, or until *own, a word of this process, is not `own_value`. It may also return early. True:
 * it was the deadline.
 */
bool bell_sleep(const struct bell_list *list, const _Atomic uint32_t *own, uint32_t own_value,
		uint64_t deadline_ns);
/* Counts *own up and wakes the thread that sleeps on it. Any thread. */
void bell_wake(_Atomic uint32_t *own);
