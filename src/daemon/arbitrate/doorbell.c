#include "daemon/arbitrate/doorbell.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Kernel headers before Linux 5.16 lack this. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define WAITV_SIZE_U32 0x02
#define WAITV_PRIVATE FUTEX_PRIVATE_FLAG

struct waitv { /* the kernel's struct futex_waitv */
	uint64_t value;
	uint64_t address;
	uint32_t flags;
	uint32_t reserved;
};

void doorbell_init(struct doorbell *b, const _Atomic uint32_t *word)
{
	*b = (struct doorbell){ .word = word, .seen_value = atomic_load(word) };
	/* If the counter is not 0, an earlier daemon had the tenant, which has rung before. */
	b->has_rung = b->seen_value != 0;
}

static void spend(struct doorbell *b, uint64_t now_ns, uint64_t amount_ns)
{
	uint64_t passed = now_ns - b->spent_at_ns;

	b->spent_ns = (b->spent_ns > passed ? b->spent_ns - passed : 0) + amount_ns;
	b->spent_at_ns = now_ns;
}

static bool is_over_rate(const struct doorbell *b, uint64_t now_ns)
{
	return b->spent_ns > DOORBELL_BURST * DOORBELL_EVERY_NS + (now_ns - b->spent_at_ns);
}

bool doorbell_poll(struct doorbell *b, uint64_t now_ns)
{
	uint32_t value = atomic_load(b->word);

	if (value == b->seen_value)
		return false;
	b->seen_value = value;
	b->has_rung = true;
	spend(b, now_ns, DOORBELL_EVERY_NS);
	return true;
}

void doorbell_check(struct doorbell *b, uint64_t now_ns, bool must_ring, bool has_rung)
{
	if (has_rung)
		b->missing_since_ns = 0;
	else if (must_ring && !b->missing_since_ns)
		b->missing_since_ns = now_ns;
	if (!b->missing_since_ns || now_ns - b->missing_since_ns < DOORBELL_LATE_NS)
		return;
	b->missing_since_ns = 0;
	if (now_ns > b->distrusted_until_ns + DOORBELL_FORGIVEN_NS)
		b->misses = 0;
	b->distrusted_until_ns = now_ns + (DOORBELL_DISTRUST_NS << b->misses);
	b->misses += b->misses < DOORBELL_DOUBLINGS;
}

bool doorbell_is_trusted(const struct doorbell *b, uint64_t now_ns)
{
	return b->has_rung && now_ns >= b->distrusted_until_ns && !is_over_rate(b, now_ns);
}

bool doorbell_list_add(struct doorbell_list *list, const struct doorbell *b)
{
	if (list->count == DOORBELL_LIST_MAX)
		return false;
	list->entry[list->count].word = b->word;
	list->entry[list->count++].value = b->seen_value;
	return true;
}

static long wait_for_all(const struct doorbell_list *list, const _Atomic uint32_t *own,
			 uint32_t own_value, const struct timespec *until)
{
	struct waitv v[1 + DOORBELL_LIST_MAX];

	v[0] = (struct waitv){ own_value, (uintptr_t)own, WAITV_SIZE_U32 | WAITV_PRIVATE, 0 };
	for (size_t i = 0; i < list->count; i++)
		v[1 + i] = (struct waitv){ list->entry[i].value, (uintptr_t)list->entry[i].word,
					   WAITV_SIZE_U32, 0 };
	return syscall(SYS_futex_waitv, v, 1 + list->count, 0, until, CLOCK_MONOTONIC);
}

bool doorbell_is_supported(void)
{
	const struct doorbell_list none = { .count = 0 };
	_Atomic uint32_t word = 0;
	struct timespec now = clock_to_timespec(clock_now_ns());

	/* EAGAIN: the kernel has futex_waitv, and saw that the word differs from the expected value. */
	return wait_for_all(&none, &word, 1, &now) < 0 && errno == EAGAIN;
}

bool doorbell_wait(const struct doorbell_list *list, const _Atomic uint32_t *own,
		   uint32_t own_value, uint64_t deadline_ns)
{
	struct timespec until = clock_to_timespec(deadline_ns);

	long r = list->count ? wait_for_all(list, own, own_value, &until)
			     : syscall(SYS_futex, own, FUTEX_WAIT_BITSET_PRIVATE, own_value, &until,
				       NULL, FUTEX_BITSET_MATCH_ANY);
	return r < 0 && errno == ETIMEDOUT;
}

void doorbell_wake(_Atomic uint32_t *own)
{
	atomic_fetch_add(own, 1);
	syscall(SYS_futex, own, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
