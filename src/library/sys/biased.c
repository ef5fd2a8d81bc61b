#include "library/sys/biased.h"

#include <linux/membarrier.h>

/* Registration of the process for membarrier: 0 not tried, 1 yes, 2 not possible here. */
static _Atomic int registered;

static bool membarrier(int command)
{
	int saved = errno;
	bool is_done = syscall(SYS_membarrier, command, 0, 0) == 0;

	errno = saved;
	return is_done;
}

static bool can_revoke(void)
{
	int state = atomic_load(&registered);

	if (!state) {
		state = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? 1 : 2;
		atomic_store(&registered, state);
	}
	return state == 1;
}

/*
 * Makes each other thread execute a full memory barrier: it then sees the calling thread's earlier stores, and the calling
 * thread sees its earlier stores. If membarrier fails (a seccomp filter), sleeps to give the stores time.
 */
static void barrier_all_threads(void)
{
	if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		sys_sleep_ns(10 * NS_PER_MS);
}

enum biased_hold biased_enter_slowly(struct biased_lock *b, bool is_visit)
{
	if (atomic_load(&b->is_shared))
		return BIASED_SHARED;
	sys_lock(&b->lock);
	uintptr_t own = biased_thread(), owner = atomic_load(&b->owner);
	bool is_taken = owner && (owner ^ own) >= BIASED_LOSSES_MAX;
	uint8_t losses = atomic_load(&b->losses);

	if (is_taken) {
		atomic_store(&b->owner, 0);
		barrier_all_threads();
		/* Sleeping lets the owner run, whatever its priority. */
		while (atomic_load_explicit(&b->busy[losses], memory_order_acquire))
			sys_sleep_ns(20 * NS_PER_US);
	}
	losses += is_taken && !is_visit;
	if (losses >= BIASED_LOSSES_MAX || !can_revoke())
		atomic_store(&b->is_shared, true);
	else if (is_taken && !is_visit)
		atomic_store(&b->losses, losses);
	b->next_owner = is_visit ? owner : own | losses;
	if (!atomic_load(&b->is_shared))
		return BIASED_LOCKED;
	atomic_store(&b->owner, 0);
	sys_unlock(&b->lock);
	return BIASED_SHARED;
}

void biased_leave_locked(struct biased_lock *b)
{
	atomic_store(&b->owner, b->next_owner);
	sys_unlock(&b->lock);
}

void biased_reset(struct biased_lock *b)
{
	*b = (struct biased_lock){ 0 };
	atomic_store(&registered, 0);
}
