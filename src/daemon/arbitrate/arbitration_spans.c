#include <errno.h>
#include <stdlib.h>

#include "daemon/arbitrate/arbitration.h"
#include "daemon/arbitrate/arbitration_inside.h"

#define FREE_KEY (UINT64_C(1) << 63) /* marks the keys of tenants that run without a lease */

/* If a space group has the lease, finds its first member that has work. */
static const struct lessee *find_lessee(const struct arbitration *a)
{
	const struct lessee *l = a->lessees;
	while (l && !(arbiter_has_lease(a->arbiter, l->index) &&
		      (!l->shares_space || arbiter_is_active(a->arbiter, l->index))))
		l = l->next;
	return l;
}

static const struct lessee *find_free(const struct arbitration *a)
{
	if (arbiter_mode(a->arbiter) != ARBITER_FREE)
		return NULL;
	for (const struct lessee *l = a->lessees; l; l = l->next)
		if (arbiter_is_active(a->arbiter, l->index))
			return l;
	return NULL;
}

void arbitration_note_span(struct arbitration *a, uint64_t now_ns)
{
	int holder = arbiter_holder(a->arbiter);
	const struct lessee *l = holder >= 0 ? find_lessee(a) : find_free(a);
	struct lease_span_state state = {
		.is_free = holder < 0,
		.is_closing = holder >= 0 && arbiter_state(a->arbiter, holder) == LEASE_CLOSING,
		.end = arbiter_last_end(a->arbiter),
	};
	uint64_t key = 0;
	/* The key combines the tenant's index with the number of its lease, so it differs for each lease. */
	if (l)
		key = state.is_free
			      ? FREE_KEY | (uint64_t)(l->index + 1)
			      : arbiter_leases(a->arbiter, l->index) * (2 * ARBITER_MAX_TENANTS) +
					(uint64_t)(l->index + 1);
	lease_spans_note(a->spans, now_ns, l ? l->tenant : NULL, key, state);
}

int arbitration_watch_spans(struct arbitration *a, bool is_watched)
{
	struct lease_spans *spans = is_watched ? calloc(1, sizeof(*spans)) : NULL;
	int r = is_watched && !spans ? -ENOMEM : 0;
	pthread_mutex_lock(&a->worker.lock);
	a->span_watchers += is_watched ? 1 : -1;
	struct lease_spans *before = a->spans;
	if (is_watched ? !before : !a->span_watchers) {
		a->spans = spans;
		spans = before;
		/*
		 * lease_spans_note() marks the span of its first call as begun before the recording. So make that call now: a
		 * later first call could wrongly mark a span that began during the recording.
		 */
		if (a->spans)
			arbitration_note_span(a, clock_now_ns());
	} else if (is_watched) {
		r = 0;
	}
	pthread_mutex_unlock(&a->worker.lock);
	free(spans);
	return r;
}

size_t arbitration_spans(struct arbitration *a, uint64_t since, uint64_t now_ns,
			 struct lease_span ret[LEASE_SPANS_MAX], uint64_t *ret_since)
{
	size_t count = 0;
	pthread_mutex_lock(&a->worker.lock);
	if (a->spans)
		count = lease_spans_since(a->spans, since, now_ns, ret, ret_since);
	else
		*ret_since = 0;
	pthread_mutex_unlock(&a->worker.lock);
	return count;
}
