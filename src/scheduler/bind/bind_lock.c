#include "scheduler/bind/bind_lock.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static void observe(struct lock_observation *observed_lock, const char *text, uint64_t now_ns)
{
	/* A longer text is no valid lock, so comparing the part that fits is enough. */
	if (strncmp(observed_lock->text, text, sizeof(observed_lock->text) - 1) != 0) {
		snprintf(observed_lock->text, sizeof(observed_lock->text), "%s", text);
		observed_lock->since_ns = now_ns;
	}
}

enum lock_state lock_check(struct lock_observation *observed_lock, const struct lock_query *q,
			   struct node_lock *ret)
{
	struct node_lock lock = { 0 };
	observe(observed_lock, q->text ? q->text : "", q->now_ns);
	*ret = lock;
	if (!q->text || !*q->text)
		return LOCK_FREE;
	bool is_read = node_lock_parse(q->text, &lock, NULL) >= 0;
	if (is_read)
		*ret = lock;
	if (is_read && node_lock_is_of(&lock, q->pod_namespace, q->pod))
		return LOCK_OWN;
	bool is_old = (q->now_ns - observed_lock->since_ns) / NSEC_PER_SEC > (uint64_t)q->expiry_s;
	if (is_old || (is_read && node_lock_is_expired(&lock, q->now_s, q->expiry_s)))
		return LOCK_EXPIRED;
	return LOCK_HELD;
}

bool lock_is_abandoned(const struct kube_pod *holder, const char *node, uint64_t unchanged_ns)
{
	if (!holder || holder->phase == POD_ENDED)
		return true;
	if (*holder->node && strcmp(holder->node, node) != 0)
		return true;
	bool is_over = holder->phase == POD_RUNNING || holder->bind_phase == BIND_SUCCESS ||
		       holder->bind_phase == BIND_FAILED;
	return is_over && unchanged_ns >= LOCK_GRACE_NS;
}
