#include "kube/hami/find_allocating.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kube/hami/annotations.h"
#include "kube/util/sanitize.h"

#define IDS_TEXT_MAX 160

/* "GPU-a-3, GPU-b-1", cut if too long. */
static const char *ids_text(const struct choice_query *q, char text[IDS_TEXT_MAX])
{
	size_t at = 0;
	text[0] = '\0';
	for (size_t i = 0; i < q->id_count && at < IDS_TEXT_MAX - 1; i++)
		at += (size_t)snprintf(text + at, IDS_TEXT_MAX - at, "%s%s", i ? ", " : "",
				       q->id[i]);
	return text;
}

static bool is_at(const struct kube_pod *pod, const char *node)
{
	return !strcmp(pod_node(pod), node) && !pod->is_terminating && pod->phase != POD_ENDED;
}

static bool is_here(const struct choice_query *q, const struct kube_pod *pod)
{
	return is_at(pod, q->node);
}

/* True if the text has any character other than ';': the pod may then have shares that are not allocated yet. */
static bool has_open_share(const struct kube_pod *pod)
{
	return pod->to_allocate && pod->to_allocate[strspn(pod->to_allocate, ";")];
}

bool choice_is_open(const struct kube_pod *pod, const char *node, int64_t now_s)
{
	int64_t since_s;
	int r = pod_bind_time(pod, &since_s, NULL);
	return is_at(pod, node) && pod->bind_phase == BIND_ALLOCATING && has_open_share(pod) &&
	       (r == -ENODATA || (r >= 0 && now_s - since_s <= CHOICE_BIND_LIMIT_S));
}

static int check_time(const struct choice_query *q, const struct kube_pod *pod, struct error *err)
{
	int64_t limit_s = q->bind_limit_s ? q->bind_limit_s : CHOICE_BIND_LIMIT_S, since_s;
	int r = pod_bind_time(pod, &since_s, err);
	if (r == -ENODATA)
		/* Some schedulers write no bind time; then there is no time limit. */
		return 0;
	if (r >= 0 && q->now_s - since_s > limit_s)
		r = error_set(err, ETIMEDOUT,
			      KUBE_POD_BIND_TIME
			      " is %lld s ago, but the binding to a node may take %lld s at most",
			      (long long)(q->now_s - since_s), (long long)limit_s);
	return r < 0 ? error_add(err, r, "pod %s/%s", pod->pod_namespace, pod->name) : 0;
}

static int find_owner(const struct choice_query *q, const struct kube_pod **ret, struct error *err)
{
	char ids[IDS_TEXT_MAX];
	const struct node_lock *lock = q->lock;
	for (size_t i = 0; i < q->pod_count; i++) {
		const struct kube_pod *pod = q->pod[i];
		if (!node_lock_is_of(lock, pod->pod_namespace, pod->name))
			continue;
		if (strcmp(pod_node(pod), q->node) != 0)
			return error_set(
				err, EINVAL,
				"node %s is locked by pod %s/%s, but that pod is on node %s. "
				"Another pod waits for %s: create the waiting pod anew when the "
				"lock expires (lock_expiry)",
				q->node, lock->pod_namespace, lock->pod, pod_node(pod),
				ids_text(q, ids));
		if (!is_here(q, pod))
			return error_set(
				err, EBUSY,
				"a pod waits for %s, but node %s is still locked by pod %s/%s. "
				"The locking pod has ended or is ending: create the waiting pod "
				"anew when the lock expires (lock_expiry)",
				ids_text(q, ids), q->node, lock->pod_namespace, lock->pod);
		*ret = pod;
		return 0;
	}
	return error_set(
		err, EAGAIN,
		"node %s is locked by pod %s/%s, which the API server has not shown to allotd yet: "
		"the kubelet asks for %s; if this goes on, see allotd's log",
		q->node, lock->pod_namespace, lock->pod, ids_text(q, ids));
}

static int find_allocating(const struct choice_query *q, const struct kube_pod **ret,
			   struct error *err)
{
	const struct kube_pod *found = NULL;
	struct error late = { 0 };
	char ids[IDS_TEXT_MAX];
	for (size_t i = 0; i < q->pod_count; i++) {
		const struct kube_pod *pod = q->pod[i];
		if (!is_here(q, pod) || pod->bind_phase != BIND_ALLOCATING ||
		    !has_open_share(pod) || check_time(q, pod, &late) < 0)
			continue;
		if (found)
			return error_set(
				err, EBUSY,
				"pods %s/%s and %s/%s are both being bound to node %s, and the kubelet's request "
				"for %s fits both: delete one, and create it anew when the other runs",
				found->pod_namespace, found->name, pod->pod_namespace, pod->name,
				q->node, ids_text(q, ids));
		found = pod;
	}
	if (!found && late.code)
		return error_set(
			err, late.code,
			"the kubelet asks for %s, but the pod that waits for GPUs of this node "
			"can't have them (%s): create the pod anew",
			ids_text(q, ids), late.text);
	if (!found)
		return error_set(
			err, EAGAIN,
			"no pod is being bound to node %s by a scheduler that chooses GPUs, but "
			"the kubelet asks for %s: pods that request GPUs need allot-scheduler's "
			"schedulerName",
			q->node, ids_text(q, ids));
	*ret = found;
	return 0;
}

static int find_pod(const struct choice_query *q, const struct kube_pod **ret, struct error *err)
{
	int64_t expiry_s = q->lock_expiry_s ? q->lock_expiry_s : NODE_LOCK_EXPIRY_S;
	bool is_locked = q->lock && q->lock->pod[0] &&
			 !node_lock_is_expired(q->lock, q->now_s, expiry_s);
	if (!is_locked)
		return find_allocating(q, ret, err);
	int r = find_owner(q, ret, err);
	if (r < 0)
		return r;
	if ((*ret)->bind_phase != BIND_ALLOCATING)
		return error_set(
			err, EAGAIN,
			"pod %s/%s holds the lock of node %s, but the pod's " KUBE_POD_BIND_PHASE
			" is not 'allocating', so no scheduler is binding the pod: "
			"create the pod anew",
			(*ret)->pod_namespace, (*ret)->name, q->node);
	return check_time(q, *ret, err);
}

/* `id` is the kubelet's "<UUID>-<n>", `card` a UUID. */
static bool is_id_of(const char *id, const char *card)
{
	size_t length = strlen(card);
	return !strncmp(id, card, length) && id[length] == '-' && id[length + 1] &&
	       strspn(id + length + 1, "0123456789") == strlen(id + length + 1);
}

/* Whether the kubelet's ids name each GPU as often as the shares do. */
static bool do_cards_agree(const struct choice_query *q, const struct choice *c)
{
	for (size_t i = 0; i < c->share_count; i++) {
		size_t shares = 0, ids = 0;
		for (size_t j = 0; j < c->share_count; j++)
			shares += !strcmp(c->share[j].card, c->share[i].card);
		for (size_t j = 0; j < q->id_count; j++)
			ids += is_id_of(q->id[j], c->share[i].card);
		if (shares != ids)
			return false;
	}
	return true;
}

static int find_container(const struct choice_query *q, struct choice *c, struct error *err)
{
	char ids[IDS_TEXT_MAX];
	if (!c->shares.count)
		return error_set(
			err, EAGAIN,
			"annotation " KUBE_POD_TO_ALLOCATE
			" lists no shares that are still to be given out, but the kubelet asks for %s: if the pod does not start, create it anew",
			ids_text(q, ids));
	c->container = c->shares.share[0].container;
	if (c->container >= c->pod->containers)
		return error_set(
			err, EINVAL,
			KUBE_POD_TO_ALLOCATE
			" has GPU shares for container number %zu, but the pod has only %zu containers: "
			"create the pod anew",
			c->container + 1, c->pod->containers);
	/* The container has its shares already, so the call and its ids are for a later container. */
	if (q->has_shares && q->has_shares(q->data, c->pod, c->container))
		return error_set(
			err, EAGAIN,
			KUBE_POD_TO_ALLOCATE
			" still lists the GPU shares that container %s has already, but the kubelet asks for "
			"%s: if the pod does not start, create it anew",
			c->pod->container[c->container], ids_text(q, ids));
	c->share = shares_of(&c->shares, c->container, &c->share_count);
	if (c->share_count != q->id_count)
		return error_set(
			err, EINVAL,
			KUBE_POD_TO_ALLOCATE
			" has %zu GPU shares for container %s, but the kubelet asks for %zu (%s): create the pod anew",
			c->share_count, c->pod->container[c->container], q->id_count,
			ids_text(q, ids));
	c->cards_agree = do_cards_agree(q, c);
	return 0;
}

int choice_make(const struct choice_query *query, struct choice *ret, struct error *err)
{
	struct choice c = { 0 };
	int r = find_pod(query, &c.pod, err);
	if (r < 0)
		return r;
	r = shares_parse_of(c.pod->to_allocate ? c.pod->to_allocate : "", c.pod->init_containers,
			    c.pod->containers, &c.shares, err);
	if (r < 0)
		error_add(err, r, KUBE_POD_TO_ALLOCATE);
	else
		r = find_container(query, &c, err);
	if (r < 0) {
		shares_free(&c.shares);
		return error_sanitize(err, error_add(err, r, "pod %s/%s", c.pod->pod_namespace,
						     c.pod->name));
	}
	*ret = c;
	return 0;
}
