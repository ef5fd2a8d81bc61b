#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/util/sanitize.h"
#include "kube/hami/annotations.h"
#include "scheduler/model/model_gang.h"
#include "scheduler/model/model_inside.h"

static void free_pod_read(struct kube_pod **pod)
{
	pod_free(*pod);
}
#define cleanup_pod cleanup(free_pod_read)

void model_suspend_charge(struct model_pod *pod)
{
	if (!pod->charged)
		return;
	inventory_discharge(&pod->charged->node->inventory, &pod->charged->shares);
	const struct quota_amounts had = inventory_shares_sum(&pod->charged->shares);
	quota_subtract(&pod->name_space->used, &had);
	pod->charged->node->is_room_stale = true;
	*pod->at = pod->next;
	if (pod->next)
		pod->next->at = pod->at;
	pod->charged = NULL;
}

/* Charges the reservation or, if there is none, the shares in annotations, perhaps of an earlier attempt to place the pod. */
void model_restore_charge(struct model_pod *pod)
{
	struct model_allocation *allocation = pod->reserved.node ? &pod->reserved : &pod->annotated;
	if (pod->charged || !allocation->node)
		return;
	struct model_node *node = allocation->node;
	pod->charged = allocation;
	pod->next = node->pods;
	pod->at = &node->pods;
	if (pod->next)
		pod->next->at = &pod->next;
	node->pods = pod;
	node->is_room_stale = true;
	inventory_charge(&node->inventory, &allocation->shares);
	const struct quota_amounts has = inventory_shares_sum(&allocation->shares);
	quota_add(&pod->name_space->used, &has);
}

void model_free_allocation(struct model *m, struct model_allocation *allocation)
{
	inventory_shares_free(&allocation->shares, &m->strings);
	if (allocation->node)
		model_node_put(m, allocation->node);
	*allocation = (struct model_allocation){ 0 };
}

/* Frees an allocation that is not charged any more. If it has a node, notes that room there may have become free. */
static void drop_allocation(struct model *m, struct model_allocation *allocation)
{
	if (allocation->node)
		model_capacity_freed(m);
	model_free_allocation(m, allocation);
}

struct model_pod *model_find_pod(const struct model *m, const char *uid)
{
	return string_map_find(&m->pods, uid);
}

static void set_pending(struct model *m, struct model_pod *pod, bool is_pending)
{
	if (is_pending == (pod->at_pending != NULL))
		return;
	if (is_pending) {
		pod->next_pending = m->pending;
		pod->at_pending = &m->pending;
		if (m->pending)
			m->pending->at_pending = &pod->next_pending;
		m->pending = pod;
		return;
	}
	*pod->at_pending = pod->next_pending;
	if (pod->next_pending)
		pod->next_pending->at_pending = pod->at_pending;
	pod->at_pending = NULL;
	model_clear_nomination(m, pod);
}

static void drop_request(struct model_pod *pod)
{
	if (pod->request)
		request_free(pod->request);
	free(pod->request);
	free(pod->request_error);
	pod->request = NULL;
	pod->request_error = NULL;
}

static void free_pod(struct model *m, struct model_pod *pod)
{
	m->generation++;
	model_suspend_charge(pod);
	drop_allocation(m, &pod->annotated);
	drop_allocation(m, &pod->reserved);
	model_gang_leave(m, pod);
	drop_request(pod);
	set_pending(m, pod, false);
	model_namespace_put(m, pod->name_space);
	free(pod);
}

static void remove_pod(struct model *m, struct model_pod *pod)
{
	string_map_remove(&m->pods, &pod->entry);
	free_pod(m, pod);
}

static struct model_pod *new_pod(struct model *m, const struct kube_pod *from)
{
	size_t uid_size = strlen(from->uid) + 1, name_size = strlen(from->name) + 1;
	if (uid_size > UINT16_MAX)
		return NULL;
	struct model_pod *pod = calloc(1, sizeof(*pod) + uid_size + name_size);
	struct model_namespace *name_space = model_namespace_get(m, from->pod_namespace);
	if (!pod || !name_space) {
		model_namespace_put(m, name_space);
		free(pod);
		return NULL;
	}
	pod->name_space = name_space;
	pod->pod_namespace = name_space->name;
	memcpy(pod->text, from->uid, uid_size);
	memcpy(pod->text + uid_size, from->name, name_size);
	pod->name_at = (uint16_t)uid_size;
	string_map_add(&m->pods, &pod->entry, pod->text);
	return pod;
}

/* NULL if the pod has no annotation of shares, no card in it, or no node, or if the attempt to bind failed. */
static const char *shares_annotation(const struct kube_pod *from)
{
	const char *text = from->allocated ? from->allocated : from->to_allocate;
	bool is_failed = !*from->node && from->bind_phase == BIND_FAILED;
	return text && *pod_node(from) && !is_failed && text[strspn(text, ";")] ? text : NULL;
}

/* False: the pod requests no GPU, so its annotations of shares are forged. If the request is malformed, believes them. */
static bool may_have_shares(const struct model *m, const struct kube_pod *from)
{
	struct request request = { 0 };
	int r = request_read(from, &m->terms.request, &request, NULL);
	bool is_asking = r < 0 || request.count;
	if (r >= 0)
		request_free(&request);
	return is_asking;
}

static void read_stages(const struct kube_pod *from, uint8_t *stage)
{
	for (size_t i = 0; i < from->init_containers; i++) {
		const char *policy = json_string_value(
			json_object_get(pod_container(from, i), "restartPolicy"));
		stage[i] = policy && !strcmp(policy, "Always") ? INVENTORY_SIDECAR : INVENTORY_INIT;
	}
}

static int make_allocation(struct model *m, const struct kube_shares *shares, const uint8_t *stage,
			   size_t stages, const char *node, struct model_allocation *ret,
			   struct error *err)
{
	struct model_allocation allocation = { 0 };
	int r = inventory_shares_make(shares, stage, stages, &m->strings, &allocation.shares, err);
	if (r < 0)
		return r;
	allocation.node = model_node_get(m, node);
	if (!allocation.node) {
		drop_allocation(m, &allocation);
		return error_set_errno(err, ENOMEM, "node %s", node);
	}
	*ret = allocation;
	return 0;
}

/* A share that KUBE_BORROWED does not list borrows nothing. If that annotation is malformed, no share borrows anything. */
static int overlay_borrowed(const struct kube_pod *from, struct kube_shares *shares,
			    struct error *err)
{
	const char *text = pod_annotation(from, KUBE_LIVE_DOMAIN "/" KUBE_BORROWED);
	struct kube_shares borrowed = { 0 };
	int r = text ? shares_parse(text, &borrowed, err) : 0;
	if (r == -ENOMEM)
		return r;
	for (size_t i = 0; i < shares->count && borrowed.count; i++)
		shares->share[i].borrowed_pct = shares_borrowed(&borrowed, &shares->share[i]);
	shares_free(&borrowed);
	return 0;
}

static int read_annotated(struct model *m, const struct kube_pod *from, const char *text,
			  struct model_allocation *ret, struct error *err)
{
	struct kube_shares shares;
	cleanup_free uint8_t *stage = calloc(from->init_containers + 1, 1);
	int r = stage ? shares_parse_of(text, from->init_containers, from->containers, &shares, err)
		      : error_set_errno(err, ENOMEM, "pod");
	if (r < 0)
		return error_add(err, r,
				 from->allocated ? KUBE_POD_ALLOCATED : KUBE_POD_TO_ALLOCATE);
	read_stages(from, stage);
	r = overlay_borrowed(from, &shares, err);
	if (r >= 0)
		r = make_allocation(m, &shares, stage, from->init_containers, pod_node(from), ret,
				    err);
	shares_free(&shares);
	return r;
}

/* For a pod whose cards cannot be read from its annotations. While it is charged, the node's cards go to no other pod. */
static int make_unknown_allocation(struct model *m, const char *node, struct model_allocation *ret,
				   struct error *err)
{
	struct model_allocation allocation = { .node = model_node_get(m, node),
					       .shares.is_unknown = true };
	if (!allocation.node)
		return error_set_errno(err, ENOMEM, "node %s", node);
	*ret = allocation;
	return 0;
}

/* Unchanged annotations are not read again, because that would restart the time after which an unbound pod's shares expire. */
static int update_annotated(struct model *m, const struct kube_pod *from, struct model_pod *pod,
			    bool may_have_shares, struct error *err)
{
	const char *text = may_have_shares ? shares_annotation(from) : NULL;
	uint64_t digest = digest_add(DIGEST_FIRST, text);
	digest = digest_add(digest_add(digest, pod_node(from)), *from->node ? "bound" : "");
	if (text)
		digest = digest_add(digest,
				    pod_annotation(from, KUBE_LIVE_DOMAIN "/" KUBE_BORROWED));
	struct model_allocation annotated = { 0 };
	if (pod->annotations_digest == digest)
		return 0;
	int r = text ? read_annotated(m, from, text, &annotated, err) : 0;
	int unread = r;
	/* A bound pod has cards even if its annotation cannot be read, so its node's cards go to no other pod. */
	if (r < 0 && r != -ENOMEM && !pod->charged && *from->node)
		r = make_unknown_allocation(m, pod_node(from), &annotated, err);
	if (r < 0)
		return r;
	annotated.expires_ns = *from->node ? 0 : m->now_ns + m->terms.hold_ns;
	model_suspend_charge(pod);
	drop_allocation(m, &pod->annotated);
	pod->annotated = annotated;
	pod->annotations_digest = digest;
	model_restore_charge(pod);
	return unread;
}

static int set_request(struct model_pod *pod, struct request *request,
		       const struct error *request_error)
{
	drop_request(pod);
	if (request_error->code) {
		pod->request_error = strdup(request_error->text);
		return pod->request_error ? 0 : -ENOMEM;
	}
	pod->request = malloc(sizeof(*pod->request));
	if (!pod->request)
		return -ENOMEM;
	*pod->request = *request;
	*request = (struct request){ 0 };
	return 0;
}

/* Counts each pod's request once. Bound pods count too, so that a scheduler that just started knows the usual requests. */
static void count_request(struct model *m, const struct kube_pod *from,
			  const struct request *request)
{
	struct request of_bound = { 0 };
	if (*from->node && request_read(from, &m->terms.request, &of_bound, NULL) < 0)
		return;
	model_count_request(m, *from->node ? &of_bound : request);
	request_free(&of_bound);
}

/* 0 if the pod has no deadline. */
static int64_t read_lifetime_s(const json_t *spec)
{
	int64_t deadline_s = json_integer_value(json_object_get(spec, "activeDeadlineSeconds"));
	int64_t grace_s = json_integer_value(json_object_get(spec, "terminationGracePeriodSeconds"));
	bool is_usable = deadline_s > 0 && deadline_s <= INT32_MAX && grace_s >= 0 &&
			 grace_s <= INT32_MAX;
	return is_usable ? deadline_s + grace_s : 0;
}

static int set_pod_state(struct model *m, const struct kube_pod *from, struct model_pod *pod,
			 struct request *request, const struct error *request_error,
			 bool is_annotated, struct error *err)
{
	bool is_bound = *from->node;
	const json_t *spec = json_object_get(from->object, "spec");
	pod->priority = (int32_t)json_integer_value(json_object_get(spec, "priority"));
	pod->lifetime_s = read_lifetime_s(spec);
	pod->is_terminating = from->is_terminating;
	if (pod_bind_time(from, &pod->since_s, NULL) < 0)
		pod->since_s = 0;
	pod->is_bound = is_bound;
	set_pending(m, pod, !is_bound);
	if (is_bound)
		drop_request(pod);
	else if (set_request(pod, request, request_error) < 0)
		return error_set_errno(err, ENOMEM, "pod");
	int r = update_annotated(m, from, pod, is_annotated, err);
	/* The annotations replace the reservation; if they cannot be read, the reservation stays. */
	if (r >= 0 && is_bound)
		model_drop_reserved(m, pod);
	return r;
}

static int update_pod(struct model *m, const struct kube_pod *from, bool is_watched,
		      struct error *err)
{
	struct model_pod *pod = model_find_pod(m, from->uid);
	struct request request = { 0 };
	struct error request_error = { 0 };
	if (from->phase == POD_ENDED) {
		if (pod)
			remove_pod(m, pod);
		return 0;
	}
	int r = *from->node ? 0 : request_read(from, &m->terms.request, &request, &request_error);
	if (r == -ENOMEM)
		return error_set_errno(err, ENOMEM, "pod");
	/* A filter call's pod is stored even without GPU requests, because a bind call will follow. */
	bool is_asked_about = !*from->node && (pod || !is_watched);
	struct gang_annotations gang = { 0 };
	struct error gang_error = { 0 };
	if (m->terms.gang_hold_ns)
		gang_read(from->object, &gang, &gang_error);
	bool is_annotated = shares_annotation(from) && may_have_shares(m, from);
	bool is_ours = request.count || request_error.code || is_annotated || is_asked_about ||
		       gang.name;
	if (is_ours && !pod) {
		pod = new_pod(m, from);
		count_request(m, from, &request);
	}
	if (pod && !is_ours) {
		remove_pod(m, pod);
		pod = NULL;
	}
	r = is_ours && !pod ? error_set_errno(err, ENOMEM, "pod") : 0;
	if (pod) {
		m->generation++;
		if (is_watched)
			pod->unseen_until_ns = 0;
		pod->listed_in = m->list[MODEL_PODS];
		r = set_pod_state(m, from, pod, &request, &request_error, is_annotated, err);
		if (r >= 0 && (gang.name || pod->member))
			r = model_gang_join(m, pod, from, &gang, &gang_error, err);
	}
	request_free(&request);
	if (r >= 0 && shares_annotation(from) && !is_annotated)
		r = error_set(
			err, EINVAL,
			"has annotations with GPU shares but requests no GPU: they are ignored");
	return r;
}

static int read_and_update(struct model *m, json_t *object, bool is_watched, struct error *err)
{
	cleanup_pod struct kube_pod *from = NULL;
	int r = pod_read(object, &from, err);
	if (r < 0)
		return r;
	r = update_pod(m, from, is_watched, err);
	return r < 0 ? error_sanitize(err, error_add(err, r, "pod %s/%s", from->pod_namespace,
						     from->name))
		     : 0;
}

int model_update_pod(struct model *m, const json_t *object, struct error *err)
{
	/* Casting away const is safe: read_and_update() only takes a reference and drops it. */
	return read_and_update(m, (json_t *)(uintptr_t)object, true, err);
}

int model_update_pod_from_filter(struct model *m, json_t *object, struct error *err)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *uid = json_string_value(json_object_get(meta, "uid"));
	if (!uid || model_find_pod(m, uid))
		return 0;
	int r = read_and_update(m, object, false, err);
	struct model_pod *pod = model_find_pod(m, uid);
	if (pod)
		pod->unseen_until_ns = m->now_ns + m->terms.hold_ns;
	return r;
}

void model_remove_pod(struct model *m, const json_t *object)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *uid = json_string_value(json_object_get(meta, "uid"));
	struct model_pod *pod = uid ? model_find_pod(m, uid) : NULL;
	if (pod)
		remove_pod(m, pod);
}

int model_make_allocation(struct model *m, const struct model_pod *pod, struct model_node *node,
			  const struct kube_shares *shares, struct model_allocation *ret,
			  struct error *err)
{
	cleanup_free uint8_t *stage = calloc(shares->containers + 1, 1);
	if (!stage)
		return error_set_errno(err, ENOMEM, "reservation");
	for (size_t i = 0; i < pod->request->count; i++) {
		const struct request_part *part = &pod->request->part[i];
		stage[part->container] = (uint8_t)fit_stage(part);
	}
	return make_allocation(m, shares, stage, shares->containers, node->name, ret, err);
}

void model_reserve_allocation(struct model *m, struct model_pod *pod,
			      struct model_allocation *allocation)
{
	allocation->expires_ns = m->now_ns + m->terms.hold_ns;
	m->generation++;
	model_suspend_charge(pod);
	drop_allocation(m, &pod->reserved);
	/* Drop the shares of an earlier attempt: another pod may have that room by now. */
	drop_allocation(m, &pod->annotated);
	pod->reserved = *allocation;
	*allocation = (struct model_allocation){ 0 };
	model_restore_charge(pod);
}

int model_reserve(struct model *m, struct model_pod *pod, struct model_node *node,
		  const struct kube_shares *shares, struct error *err)
{
	struct model_allocation allocation;
	int r = model_make_allocation(m, pod, node, shares, &allocation, err);
	if (r >= 0)
		model_reserve_allocation(m, pod, &allocation);
	return r;
}

void model_drop_reserved(struct model *m, struct model_pod *pod)
{
	if (!pod->reserved.node)
		return;
	if (pod->member)
		pod->member->waits_to_bind = pod->member->is_binding = false;
	m->generation++;
	model_suspend_charge(pod);
	drop_allocation(m, &pod->reserved);
	model_restore_charge(pod);
}

void model_pods_advance(struct model *m)
{
	struct model_pod *next;
	for (struct model_pod *pod = m->pending; pod; pod = next) {
		next = pod->next_pending;
		if (pod->reserved.expires_ns && pod->reserved.expires_ns <= m->now_ns)
			model_drop_reserved(m, pod);
		if (pod->annotated.expires_ns && pod->annotated.expires_ns <= m->now_ns) {
			m->generation++;
			model_suspend_charge(pod);
			drop_allocation(m, &pod->annotated);
			model_restore_charge(pod);
		}
		if (pod->unseen_until_ns && pod->unseen_until_ns <= m->now_ns)
			remove_pod(m, pod);
	}
}

/* Forgets a pod that the list lacks, unless only a filter call has named it: such a pod may be newer than the list. */
static void remove_unlisted(void *data, void *thing)
{
	struct model *m = data;
	struct model_pod *pod = thing;
	if (pod->listed_in != m->list[MODEL_PODS] && !pod->unseen_until_ns)
		remove_pod(m, pod);
}

void model_pods_list_end(struct model *m)
{
	string_map_each(&m->pods, remove_unlisted, m);
}

static void free_each(void *data, void *thing)
{
	free_pod(data, thing);
}

void model_pods_free(struct model *m)
{
	string_map_each(&m->pods, free_each, m);
	string_map_free(&m->pods);
}
