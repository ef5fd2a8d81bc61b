/*
 * A doorbell is a counter in a tenant's shared-memory report. By incrementing it (a ring), the tenant wakes the arbitration of
 * a GPU.
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

/*
 * When the daemon sees in a tenant's slot a change that needed a ring (`must_ring` of doorbell_check()), it waits this long for
 * the ring. After that, the ring counts as missing.
 */
#define DOORBELL_LATE_NS UINT64_C(10000000)
/*
 * How long a tenant is polled after a missing ring. Doubles with each further miss, up to DOORBELL_DOUBLINGS times. A miss
 * later than DOORBELL_FORGIVEN_NS after the end of the last polling counts as the first.
 */
#define DOORBELL_DISTRUST_NS UINT64_C(100000000)
#define DOORBELL_DOUBLINGS 7
#define DOORBELL_FORGIVEN_NS UINT64_C(30000000000)
/* A tenant with more rings than this token bucket allows is polled: a burst, then one per DOORBELL_EVERY_NS. */
#define DOORBELL_BURST 50
#define DOORBELL_EVERY_NS UINT64_C(2000000)

struct doorbell {
	const _Atomic uint32_t *word; /* in the tenant's report */
	uint32_t seen_value;          /* as last read */
	bool has_rung;
	uint64_t missing_since_ns; /* a change for which no ring has come yet; 0: none */
	uint64_t distrusted_until_ns;
	unsigned misses; /* missing rings that are not forgiven yet */
	/* Used part of the token bucket, in ns. */
	uint64_t spent_ns;
	uint64_t spent_at_ns;
};

/* A counter `word` above zero shows that the tenant has rung before. */
void doorbell_init(struct doorbell *b, const _Atomic uint32_t *word);
/* True if the doorbell has rung since the last call. Call before reading the tenant's slot. */
bool doorbell_poll(struct doorbell *b, uint64_t now_ns);
/*
 * Checks whether a ring is missing. If so, the tenant is not trusted for some time. Call after each observation of the tenant's
 * slot. `must_ring`: the observation shows a change that needed a ring. `has_rung`: from doorbell_poll().
 */
void doorbell_check(struct doorbell *b, uint64_t now_ns, bool must_ring, bool has_rung);
bool doorbell_is_trusted(const struct doorbell *b, uint64_t now_ns);

/* Most doorbells on which one thread can wait. If a GPU has more tenants, all of them are polled. */
#define DOORBELL_LIST_MAX 127

struct doorbell_list {
	struct {
		const _Atomic uint32_t *word;
		uint32_t value;
	} entry[DOORBELL_LIST_MAX];
	size_t count;
};

/* Adds the doorbell with its value as last read, from which a ring differs. Returns false if the list is full. */
bool doorbell_list_add(struct doorbell_list *list, const struct doorbell *b);

/* Whether the kernel can wait on several words (Linux 5.16). If not, tenants must be polled. */
bool doorbell_is_supported(void);
/* Sleeps until a ring, *own != own_value, or the deadline (CLOCK_MONOTONIC); true if the deadline passed. May return early. */
bool doorbell_wait(const struct doorbell_list *list, const _Atomic uint32_t *own,
		   uint32_t own_value, uint64_t deadline_ns);
void doorbell_wake(_Atomic uint32_t *own);
