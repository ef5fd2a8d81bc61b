#include "library/launch/inflight/inflight_overflow.h"

#include <string.h>

#include "library/loader/real.h"
#include "library/state/helper.h"

#define HALF_FULL (INFLIGHT_OVERFLOW_MARKS / 2)
#define NAP_NS (500 * NS_PER_US)
#define PATIENCE_NS (100 * NS_PER_MS)

static struct overflow_set {
	struct {
		CUevent event; /* untimed; made on first use */
		CUcontext context;
		uint32_t launches; /* 0 if the place is free */
		uint64_t ns;
	} mark[INFLIGHT_OVERFLOW_MARKS];
	uint32_t next; /* where the search for a free place begins */
} sets[REGION_MAX_DEVICES];

static struct overflow_set *set_of(const struct inflight_stream *record)
{
	return &sets[record->device];
}

static uint32_t in_flight(const struct inflight_stream *record)
{
	return atomic_load_explicit(&record->overflow_marks, memory_order_relaxed);
}

/* Returns a free place, or any place if all are taken. The caller holds record->lock. */
static uint32_t place(struct overflow_set *set)
{
	uint32_t at = set->next;

	for (uint32_t i = 0; i < INFLIGHT_OVERFLOW_MARKS && set->mark[at].launches; i++)
		at = (at + 1) % INFLIGHT_OVERFLOW_MARKS;
	set->next = (at + 1) % INFLIGHT_OVERFLOW_MARKS;
	return at;
}

/* A stream accepts only events of its own context, so make a new event if the place has another context's. */
static bool prepare_event(struct overflow_set *set, uint32_t at, CUcontext context)
{
	if (set->mark[at].event && set->mark[at].context == context)
		return true;
	if (set->mark[at].event)
		real.cuEventDestroy_v2(set->mark[at].event);
	set->mark[at].context = context;
	if (real.cuEventCreate &&
	    real.cuEventCreate(&set->mark[at].event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
		return true;
	set->mark[at].event = NULL;
	return false;
}

bool inflight_overflow_mark(struct inflight_stream *record, CUstream stream, uint64_t ns)
{
	struct overflow_set *set = set_of(record);
	CUcontext context = NULL;

	if (real.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
		return false;
	WITH_LOCK(&record->lock);
	uint32_t at = place(set);
	if (!prepare_event(set, at, context) ||
	    real.cuEventRecord(set->mark[at].event, stream) != CUDA_SUCCESS)
		return false;
	if (!set->mark[at].launches)
		atomic_fetch_add(&record->overflow_marks, 1);
	set->mark[at].launches++;
	set->mark[at].ns += ns;
	return true;
}

void inflight_overflow_wait(struct inflight_stream *record)
{
	struct inflight_device *d = &inflight_devices[record->device];
	uint64_t completed = atomic_load(&d->completed), waited_ns = 0;

	if (likely(in_flight(record) < HALF_FULL))
		return;
	helper_wake();
	while (in_flight(record) >= HALF_FULL) {
		uint32_t progress = atomic_load(&d->progress);
		uint64_t now_completed = atomic_load(&d->completed);
		if (now_completed != completed) {
			completed = now_completed;
			waited_ns = 0;
		} else if (waited_ns > PATIENCE_NS) {
			return;
		}
		atomic_fetch_add(&d->waiters, 1);
		waited_ns += sys_futex_nap(&d->progress, progress, NAP_NS, false);
		atomic_fetch_sub(&d->waiters, 1);
	}
}

/* Frees the place of mark `at`, and adds its counts to *launches and *ns. The caller holds record->lock. */
static void collect_mark(struct inflight_stream *record, uint32_t at, uint32_t *launches,
			 uint64_t *ns)
{
	struct overflow_set *set = set_of(record);

	*launches += set->mark[at].launches;
	*ns += set->mark[at].ns;
	set->mark[at].launches = 0;
	set->mark[at].ns = 0;
	atomic_fetch_sub(&record->overflow_marks, 1);
}

void inflight_overflow_reap(struct inflight_stream *record, uint32_t *ret_launches, uint64_t *ret_ns)
{
	struct overflow_set *set = set_of(record);

	*ret_launches = 0;
	*ret_ns = 0;
	for (uint32_t i = 0; i < INFLIGHT_OVERFLOW_MARKS && in_flight(record); i++)
		if (set->mark[i].launches &&
		    real.cuEventQuery(set->mark[i].event) != CUDA_ERROR_NOT_READY)
			collect_mark(record, i, ret_launches, ret_ns);
}

void inflight_overflow_drop(struct inflight_stream *record, CUcontext context,
			    uint32_t *ret_launches, uint64_t *ret_ns)
{
	struct overflow_set *set = set_of(record);

	*ret_launches = 0;
	*ret_ns = 0;
	WITH_LOCK(&record->lock);
	for (uint32_t i = 0; i < INFLIGHT_OVERFLOW_MARKS; i++) {
		if (set->mark[i].context != context)
			continue;
		if (set->mark[i].launches)
			collect_mark(record, i, ret_launches, ret_ns);
		set->mark[i].event = NULL;
		set->mark[i].context = NULL;
	}
}

void inflight_overflow_reset(void)
{
	memset(sets, 0, sizeof(sets));
}
