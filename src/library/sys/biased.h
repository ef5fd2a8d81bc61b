/*
 * A lock for data that one thread, the owner, uses nearly always, and other threads rarely. The owner needs only plain loads
 * and stores (a locked instruction takes 7 ns). Another thread needs a system call (membarrier) of some microseconds. If
 * threads take the lock from each other again and again, ownership ends for good, and all use atomic instructions
 * (BIASED_SHARED). The guarded data are atomic words, which biased_add(), biased_add_wide() and biased_move() change by plain
 * or atomic instructions, according to enum biased_hold.
 *
 * Why the owner needs no locked instruction: it sets its busy flag, and then checks that it is still the owner. Another thread
 * first clears `owner`, shows that to all threads by membarrier (a full barrier in each running thread), and then checks the
 * busy flag. So at least one of the two threads sees the other. A thread that has lost ownership without noticing may still set
 * its busy flag while the new owner is inside. So each ownership has its own flag, whose number is part of `owner`.
 *
 * Hold the lock for a few instructions only, and make no driver call meanwhile. Not recursive. A zeroed lock is free and has no
 * owner.
 */
#pragma once

#include "library/sys/sys.h"

/* How often ownership passes on before all threads share the lock. `losses` fits the low bits of an aligned thread pointer. */
#define BIASED_LOSSES_MAX 8

struct biased_lock {
	_Atomic uintptr_t owner; /* biased_thread() of the owner, plus `losses`; 0 if none */
	uintptr_t next_owner;    /* `owner` after the lock is left; guarded by `lock` */
	/* busy[losses] is 1 while the owner holds the lock. */
	_Atomic uint8_t busy[BIASED_LOSSES_MAX];
	struct sys_lock lock;   /* held by threads that are not the owner */
	_Atomic bool is_shared; /* all threads use BIASED_SHARED, for good */
	/* How often ownership has passed to another thread; biased_visit() does not count. Guarded by `lock`. */
	_Atomic uint8_t losses;
};

/* Tests stop a thread here, between reading `owner` and setting its flag. */
#ifndef BIASED_PAUSE
#define BIASED_PAUSE() ((void)0)
#endif

enum biased_hold { BIASED_OWN, BIASED_LOCKED, BIASED_SHARED };

/* Differs between live threads. A new thread may have the value of one that has ended. */
static inline uintptr_t biased_thread(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

enum biased_hold biased_enter_slowly(struct biased_lock *b, bool is_visit);
void biased_leave_locked(struct biased_lock *b);

/* Call in a forked child, where the owner may not exist. */
void biased_reset(struct biased_lock *b);

static inline bool biased_enter_own(struct biased_lock *b)
{
	uintptr_t owner = atomic_load_explicit(&b->owner, memory_order_relaxed);

	if (unlikely((owner ^ biased_thread()) >= BIASED_LOSSES_MAX))
		return false;
	BIASED_PAUSE();
	atomic_store_explicit(&b->busy[owner % BIASED_LOSSES_MAX], 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&b->owner, memory_order_acquire) == owner))
		return true;
	atomic_store_explicit(&b->busy[owner % BIASED_LOSSES_MAX], 0, memory_order_release);
	return false;
}

static inline enum biased_hold biased_enter(struct biased_lock *b)
{
	return likely(biased_enter_own(b)) ? BIASED_OWN : biased_enter_slowly(b, false);
}

/* Enters without becoming the owner: for a thread that rarely takes this lock. */
static inline enum biased_hold biased_visit(struct biased_lock *b)
{
	return biased_enter_slowly(b, true);
}

static inline void biased_leave(struct biased_lock *b, enum biased_hold hold)
{
	if (likely(hold == BIASED_OWN))
		atomic_store_explicit(
			&b->busy[atomic_load_explicit(&b->losses, memory_order_relaxed)], 0,
			memory_order_release);
	else if (hold == BIASED_LOCKED)
		biased_leave_locked(b);
}

/* Returns the old value. */
static inline uint32_t biased_add(enum biased_hold hold, _Atomic uint32_t *word, uint32_t n)
{
	if (unlikely(hold == BIASED_SHARED))
		return atomic_fetch_add(word, n);
	uint32_t old = atomic_load_explicit(word, memory_order_relaxed);
	atomic_store_explicit(word, old + n, memory_order_relaxed);
	return old;
}

static inline uint64_t biased_add_wide(enum biased_hold hold, _Atomic uint64_t *word, uint64_t n)
{
	if (unlikely(hold == BIASED_SHARED))
		return atomic_fetch_add(word, n);
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
	atomic_store_explicit(word, old + n, memory_order_relaxed);
	return old;
}

/* Returns false, having changed nothing, if the word is not `from`. */
static inline bool biased_move(enum biased_hold hold, _Atomic uint32_t *word, uint32_t from,
			       uint32_t to)
{
	if (atomic_load_explicit(word, memory_order_relaxed) != from)
		return false;
	if (unlikely(hold == BIASED_SHARED))
		return atomic_compare_exchange_strong(word, &from, to);
	atomic_store_explicit(word, to, memory_order_relaxed);
	return true;
}
