#include "library/launch/inflight/inflight_settle.h"

#include "library/loader/real.h"

static bool has_ended(struct inflight_stream *s)
{
	WITH_LOCK(&s->lock);
	return s->tail == s->head && !atomic_load_explicit(&s->unmarked, memory_order_relaxed) &&
	       !atomic_load(&s->overflow_marks);
}

bool inflight_is_sync_point(int device, struct inflight_stream *only)
{
	uint32_t end = atomic_load(&inflight_used_count);
	bool has_worked = false;

	/* The overflow record stands for many streams. The thread waited for one; others may have work in flight. */
	if (only && inflight_is_overflow(only))
		return false;
	for (uint32_t i = 0; i < end; i++) {
		struct inflight_stream *s = inflight_used_stream(i);
		uint32_t launched = atomic_load_explicit(&s->launched, memory_order_relaxed);
		if (!atomic_load(&s->in_use) || s->device != device ||
		    launched == atomic_load_explicit(&s->synced, memory_order_relaxed))
			continue;
		bool is_other = only && s != only;
		if (is_other && !has_ended(s))
			return false;
		has_worked |= !is_other;
		if (only == s)
			continue;
		atomic_store_explicit(&s->synced, launched, memory_order_relaxed);
	}
	if (only && has_worked)
		atomic_store_explicit(&only->synced,
				      atomic_load_explicit(&only->launched, memory_order_relaxed),
				      memory_order_relaxed);
	return has_worked;
}

void inflight_note_end(int device, struct inflight_stream *only, uint64_t launches_before)
{
	uint32_t end = atomic_load(&inflight_used_count), launched[INFLIGHT_RECORDS];
	uint64_t launches = atomic_load(&inflight_devices[device].launched_before);
	CUcontext current = NULL;

	if (!only && real.cuCtxGetCurrent(&current) != CUDA_SUCCESS)
		return;
	for (uint32_t i = 0; i < end; i++) {
		struct inflight_stream *s = inflight_used_stream(i);
		launched[i] = atomic_load(&s->launched);
		if (atomic_load(&s->in_use) && s->device == device)
			launches += launched[i];
	}
	/* If the sums are equal, the counts read above include no launch since the wait began. Newer counts might. */
	if (launches != launches_before)
		return;
	for (uint32_t i = 0; i < end; i++) {
		struct inflight_stream *s = inflight_used_stream(i);
		if (!atomic_load(&s->in_use) || s->device != device ||
		    atomic_load(&s->ended) == launched[i])
			continue;
		if (only ? s == only || has_ended(s) : s->context == current)
			atomic_store(&s->ended, launched[i]);
	}
}

bool inflight_has_ended(int device)
{
	uint32_t end = atomic_load(&inflight_used_count);

	for (uint32_t i = 0; i < end; i++) {
		struct inflight_stream *s = inflight_used_stream(i);
		if (atomic_load(&s->in_use) && s->device == device &&
		    (atomic_load(&s->launched) != atomic_load(&s->ended) ||
		     atomic_load(&s->overflow_marks)))
			return false;
	}
	return true;
}

uint64_t inflight_launches(int device)
{
	uint32_t end = atomic_load(&inflight_used_count);
	uint64_t sum = atomic_load(&inflight_devices[device].launched_before);

	for (uint32_t i = 0; i < end; i++) {
		struct inflight_stream *s = inflight_used_stream(i);
		if (atomic_load(&s->in_use) && s->device == device)
			sum += atomic_load_explicit(&s->launched, memory_order_relaxed);
	}
	return sum;
}
