#include "daemon/arbitrate/bell.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Headers that are older than the kernel lack this. */
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

void bell_init(struct bell *b, const _Atomic uint32_t *word)
{
	*b = (struct bell){ .word = word, .heard = atomic_load(word) };
	/* A new tenant's word is 0. An adopted tenant with another value has rung before. */
	b->has_rung = b->heard != 0;
}

static void spend(struct bell *b, uint64_t now_ns, uint64_t amount_ns)
{
	uint64_t passed = now_ns - b->spent_at_ns;

	b->spent_ns = (b->spent_ns > passed ? b->spent_ns - passed : 0) + amount_ns;
	b->spent_at_ns = now_ns;
}

static bool is_deaf(const struct bell *b, uint64_t now_ns)
{
	return b->spent_ns > BELL_BURST * BELL_EVERY_NS + (now_ns - b->spent_at_ns);
}

bool bell_hear(struct bell *b, uint64_t now_ns)
{
	uint32_t value = atomic_load(b->word);

	if (value == b->heard)
		return false;
	b->heard = value;
	b->has_rung = true;
	spend(b, now_ns, BELL_EVERY_NS);
	return true;
}

void bell_judge(struct bell *b, uint64_t now_ns, bool is_owed, bool has_rung)
{
	if (has_rung)
		b->owed_since_ns = 0;
	else if (is_owed && !b->owed_since_ns)
		b->owed_since_ns = now_ns;
	/* The ring may come a moment after the change. */
	if (!b->owed_since_ns || now_ns - b->owed_since_ns < BELL_LATE_NS)
		return;
	b->owed_since_ns = 0;
	if (now_ns > b->distrusted_until_ns + BELL_FORGIVEN_NS)
		b->misses = 0;
	b->distrusted_until_ns = now_ns + (BELL_DISTRUST_NS << b->misses);
	b->misses += b->misses < BELL_DOUBLINGS;
}

bool bell_rings(const struct bell *b, uint64_t now_ns)
{
	return b->has_rung && now_ns >= b->distrusted_until_ns && !is_deaf(b, now_ns);
}

bool bell_list_add(struct bell_list *list, const struct bell *b)
{
	if (list->count == BELL_MOST)
		return false;
	list->bell[list->count].word = b->word;
	list->bell[list->count++].value = b->heard;
	return true;
}

static long wait_for_all(const struct bell_list *list, const _Atomic uint32_t *own,
			 uint32_t own_value, const struct timespec *until)
{
	struct waitv v[1 + BELL_MOST];

	v[0] = (struct waitv){ own_value, (uintptr_t)own, WAITV_SIZE_U32 | WAITV_PRIVATE, 0 };
	for (size_t i = 0; i < list->count; i++)
		v[1 + i] = (struct waitv){ list->bell[i].value, (uintptr_t)list->bell[i].word,
					   WAITV_SIZE_U32, 0 };
	return syscall(SYS_futex_waitv, v, 1 + list->count, 0, until, CLOCK_MONOTONIC);
}

bool bell_is_offered(void)
{
	const struct bell_list none = { .count = 0 };
	_Atomic uint32_t word = 0;
	struct timespec now = clock_to_timespec(clock_now_ns());

	/* EAGAIN: the kernel has futex_waitv, and saw that the word differs from the expected value. */
	return wait_for_all(&none, &word, 1, &now) < 0 && errno == EAGAIN;
}

bool bell_sleep(const struct bell_list *list, const _Atomic uint32_t *own, uint32_t own_value,
		uint64_t deadline_ns)
{
	struct timespec until = clock_to_timespec(deadline_ns);

	long r = list->count ? wait_for_all(list, own, own_value, &until)
			     : syscall(SYS_futex, own, FUTEX_WAIT_BITSET_PRIVATE, own_value, &until,
				       NULL, FUTEX_BITSET_MATCH_ANY);
	return r < 0 && errno == ETIMEDOUT;
}

void bell_wake(_Atomic uint32_t *own)
{
	atomic_fetch_add(own, 1);
	syscall(SYS_futex, own, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
