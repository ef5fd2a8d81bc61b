/*
 * A lock for what one thread does nearly always, and others now and then. To its owner it costs plain loads
 * and stores, where a locked instruction takes 7 ns; to take it from the owner costs a system call
 * (membarrier) of some microseconds. Where threads take it from each other again and again, it is given up
 * for good, and all use atomic instructions (BIASED_SHARED). So what is guarded are atomic words, which
 * biased_add(), biased_add_wide() and biased_move() change in the way that the hold allows.
 *
 * How the owner may do without: it says `busy` and then looks whether it is still the owner; who takes the
 * lock says so, makes all threads see it (membarrier: a full barrier in each that runs), and then looks
 * whether the owner is busy. One of the two sees the other. Who was the owner and does not know yet may say and
 * unsay `busy` at any later time, when another is the owner, and inside: so each ownership has a word of its own
 * for it, whose number is in the owner's word.
 *
 * Held for a few instructions, without a call of the driver's. Not recursive. Zero is free, and nobody's.
 */
#pragma once

#include "library/sys/sys.h"

/* How often it may be taken from its owner: from then on all share it. A thread's pointer has so many below it. */
#define BIASED_LOSSES_MAX 8

struct biased_lock {
	_Atomic uintptr_t owner; /* a thread, by biased_thread(), and `losses`; 0: nobody's */
	uintptr_t next_owner;    /* guarded by `lock` */
	_Atomic uint8_t busy[BIASED_LOSSES_MAX]; /* the owner after so many losses is inside */
	struct sys_lock lock;                    /* of all who are not the owner */
	_Atomic bool is_shared;                  /* for good */
	/* How often it was taken from its owner; guarded by `lock`, and still while the owner is inside. */
	_Atomic uint8_t losses;
};

/* Where a test stops a thread. */
#ifndef BIASED_PAUSE
#define BIASED_PAUSE() ((void)0)
#endif

enum biased_hold { BIASED_OWN, BIASED_LOCKED, BIASED_SHARED };

/* The calling thread. No two that live have the same; one that was made later may. */
static inline uintptr_t biased_thread(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

enum biased_hold biased_enter_slowly(struct biased_lock *b, bool is_visit);
void biased_leave_locked(struct biased_lock *b);

/* In a forked child: its owner may be a thread that is not there. */
void biased_reset(struct biased_lock *b);

/* As its owner, or not at all. */
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

/* As one who comes rarely: the owner is the same afterwards. */
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

/* Adds, and returns what it was. */
static inline uint32_t biased_add(enum biased_hold hold, _Atomic uint32_t *word, uint32_t n)
{
	if (unlikely(hold == BIASED_SHARED))
		return atomic_fetch_add(word, n);
	uint32_t old = atomic_load_explicit(word, memory_order_relaxed);
	atomic_store_explicit(word, old + n, memory_order_relaxed);
	return old;
}

/* The same of a wide word. */
static inline uint64_t biased_add_wide(enum biased_hold hold, _Atomic uint64_t *word, uint64_t n)
{
	if (unlikely(hold == BIASED_SHARED))
		return atomic_fetch_add(word, n);
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
	atomic_store_explicit(word, old + n, memory_order_relaxed);
	return old;
}

/* From one value to another; false when it is not the one. */
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
