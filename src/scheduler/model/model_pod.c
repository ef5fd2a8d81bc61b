/* The model's pods: the shares that each has, and the requests of those that wait. */
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

/* ---- charges ---- */

void model_lift(struct model_pod *pod)
{
	if (!pod->charged)
		return;
	inventory_discharge(&pod->charged->node->inventory, &pod->charged->hold);
	const struct quota_amounts had = inventory_hold_sum(&pod->charged->hold);
	quota_subtract(&pod->space->used, &had);
	pod->charged->node->is_room_old = true;
	*pod->at = pod->next;
	if (pod->next)
		pod->next->at = pod->at;
	pod->charged = NULL;
}

/* Charges the reservation, or else the shares in the annotations, perhaps of an earlier attempt. */
void model_put_back(struct model_pod *pod)
{
	struct model_hold *hold = pod->reserved.node ? &pod->reserved : &pod->noted;
	if (pod->charged || !hold->node)
		return;
	struct model_node *node = hold->node;
	pod->charged = hold;
	pod->next = node->pods;
	pod->at = &node->pods;
	if (pod->next)
		pod->next->at = &pod->next;
	node->pods = pod;
	node->is_room_old = true;
	inventory_charge(&node->inventory, &hold->hold);
	const struct quota_amounts has = inventory_hold_sum(&hold->hold);
	quota_add(&pod->space->used, &has);
}

void model_drop_hold(struct model *m, struct model_hold *hold)
{
	inventory_hold_free(&hold->hold, &m->words);
	if (hold->node)
		model_node_give(m, hold->node);
	*hold = (struct model_hold){ 0 };
}

/* Drops a hold that is not charged any more, and notes that room was freed. */
static void drop_hold(struct model *m, struct model_hold *hold)
{
	if (hold->node)
		model_note_room(m);
	model_drop_hold(m, hold);
}

/* ---- entries ---- */
struct model_pod *model_find_pod(const struct model *m, const char *uid)
{
	return string_map_find(&m->pods, uid);
}

static void set_open(struct model *m, struct model_pod *pod, bool is_open)
{
	if (is_open == (pod->at_open != NULL))
		return;
	if (is_open) {
		pod->next_open = m->open;
		pod->at_open = &m->open;
		if (m->open)
			m->open->at_open = &pod->next_open;
		m->open = pod;
		return;
	}
	*pod->at_open = pod->next_open;
	if (pod->next_open)
		pod->next_open->at_open = pod->at_open;
	pod->at_open = NULL;
	model_forget_want(m, pod);
}

static void drop_request(struct model_pod *pod)
{
	if (pod->request)
		request_free(pod->request);
	free(pod->request);
	free(pod->broken);
	pod->request = NULL;
	pod->broken = NULL;
}

static void free_pod(struct model *m, struct model_pod *pod)
{
	m->changes++;
	model_lift(pod);
	drop_hold(m, &pod->noted);
	drop_hold(m, &pod->reserved);
	model_gang_leave(m, pod);
	drop_request(pod);
	set_open(m, pod, false);
	model_space_give(m, pod->space);
	free(pod);
}

static void forget(struct model *m, struct model_pod *pod)
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
	struct model_space *space = model_space_take(m, from->pod_namespace);
	if (!pod || !space) {
		model_space_give(m, space);
		free(pod);
		return NULL;
	}
	pod->space = space;
	pod->pod_namespace = space->name;
	memcpy(pod->text, from->uid, uid_size);
	memcpy(pod->text + uid_size, from->name, name_size);
	pod->name_at = (uint16_t)uid_size;
	string_map_add(&m->pods, &pod->entry, pod->text);
	return pod;
}

/* ---- shares in annotations ---- */

/* Returns the annotation with the pod's shares; NULL if none counts. */
static const char *noted_text(const struct kube_pod *from)
{
	const char *text = from->allocated ? from->allocated : from->to_allocate;
	bool is_failed = !*from->node && from->bind_phase == BIND_FAILED;
	return text && *pod_node(from) && !is_failed && text[strspn(text, ";")] ? text : NULL;
}

/*
 * False if the annotations of shares must be wrong: anyone can write them, and a pod that requests no GPU was given none. With
 * an unreadable request they are believed.
 */
static bool is_noted_by_right(const struct model *m, const struct kube_pod *from)
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

static int make_hold(struct model *m, const struct kube_shares *shares, const uint8_t *stage,
		     size_t stages, const char *node, struct model_hold *ret, struct error *err)
{
	struct model_hold hold = { 0 };
	int r = inventory_hold_make(shares, stage, stages, &m->words, &hold.hold, err);
	if (r < 0)
		return r;
	hold.node = model_node_take(m, node);
	if (!hold.node) {
		drop_hold(m, &hold);
		return error_set_errno(err, ENOMEM, "node %s", node);
	}
	*ret = hold;
	return 0;
}

/*
 * Reads which part of the shares is borrowed. If that annotation is malformed or does not match, all compute counts as
 * guaranteed.
 */
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

static int read_noted(struct model *m, const struct kube_pod *from, const char *text,
		      struct model_hold *ret, struct error *err)
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
		r = make_hold(m, &shares, stage, from->init_containers, pod_node(from), ret, err);
	shares_free(&shares);
	return r;
}

/* Makes a hold for a pod that has unknown cards of the node. Meanwhile no other pod gets cards of that node. */
static int make_unknown(struct model *m, const char *node, struct model_hold *ret, struct error *err)
{
	struct model_hold hold = { .node = model_node_take(m, node), .hold.is_unknown = true };
	if (!hold.node)
		return error_set_errno(err, ENOMEM, "node %s", node);
	*ret = hold;
	return 0;
}

/* Charges the shares in the annotations. Unchanged annotations are not read again, and do not expire later. */
static int take_noted(struct model *m, const struct kube_pod *from, struct model_pod *pod,
		      bool is_by_right, struct error *err)
{
	const char *text = is_by_right ? noted_text(from) : NULL;
	uint64_t digest = digest_add(DIGEST_FIRST, text);
	digest = digest_add(digest_add(digest, pod_node(from)), *from->node ? "bound" : "");
	if (text)
		digest = digest_add(digest,
				    pod_annotation(from, KUBE_LIVE_DOMAIN "/" KUBE_BORROWED));
	struct model_hold noted = { 0 };
	if (pod->said == digest)
		return 0;
	int r = text ? read_noted(m, from, text, &noted, err) : 0;
	int unread = r;
	/*
	 * A bound pod has cards, even if we cannot read which: assign no card of its node. (An unbound pod gets its annotations
	 * at the next attempt.)
	 */
	if (r < 0 && r != -ENOMEM && !pod->charged && *from->node)
		r = make_unknown(m, pod_node(from), &noted, err);
	if (r < 0)
		return r;
	noted.expires_ns = *from->node ? 0 : m->now_ns + m->terms.hold_ns;
	model_lift(pod);
	drop_hold(m, &pod->noted);
	pod->noted = noted;
	pod->said = digest;
	model_put_back(pod);
	return unread;
}

/* ---- requests ---- */

static int take_request(struct model_pod *pod, struct request *request, const struct error *broken)
{
	drop_request(pod);
	if (broken->code) {
		pod->broken = strdup(broken->text);
		return pod->broken ? 0 : -ENOMEM;
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

/* ---- pods ---- */

static int take(struct model *m, const struct kube_pod *from, struct model_pod *pod,
		struct request *request, const struct error *broken, bool is_noted,
		struct error *err)
{
	bool is_bound = *from->node;
	const json_t *spec = json_object_get(from->object, "spec");
	pod->priority = (int32_t)json_integer_value(json_object_get(spec, "priority"));
	pod->is_ending = from->is_ending;
	if (pod_bind_time(from, &pod->since_s, NULL) < 0)
		pod->since_s = 0;
	pod->is_bound = is_bound;
	set_open(m, pod, !is_bound);
	if (is_bound)
		drop_request(pod);
	else if (take_request(pod, request, broken) < 0)
		return error_set_errno(err, ENOMEM, "pod");
	int r = take_noted(m, from, pod, is_noted, err);
	/* The annotations replace the reservation; if they cannot be read, the reservation stays. */
	if (r >= 0 && is_bound)
		model_drop_reserved(m, pod);
	return r;
}

static int see(struct model *m, const struct kube_pod *from, bool is_watched, struct error *err)
{
	struct model_pod *pod = model_find_pod(m, from->uid);
	struct request request = { 0 };
	struct error broken = { 0 };
	if (from->phase == POD_ENDED) {
		if (pod)
			forget(m, pod);
		return 0;
	}
	int r = *from->node ? 0 : request_read(from, &m->terms.request, &request, &broken);
	if (r == -ENOMEM)
		return error_set_errno(err, ENOMEM, "pod");
	/* Store a filter call's pod even without GPU requests, because a bind call will follow. */
	bool is_asked_about = !*from->node && (pod || !is_watched);
	struct gang_said gang = { 0 };
	struct error gang_broken = { 0 };
	if (m->terms.gang_hold_ns)
		gang_read(from->object, &gang, &gang_broken);
	bool is_noted = noted_text(from) && is_noted_by_right(m, from);
	bool is_ours = request.count || broken.code || is_noted || is_asked_about || gang.name;
	if (is_ours && !pod) {
		pod = new_pod(m, from);
		count_request(m, from, &request);
	}
	if (pod && !is_ours) {
		forget(m, pod);
		pod = NULL;
	}
	r = is_ours && !pod ? error_set_errno(err, ENOMEM, "pod") : 0;
	if (pod) {
		m->changes++;
		if (is_watched)
			pod->unseen_until_ns = 0;
		pod->is_listed = true;
		r = take(m, from, pod, &request, &broken, is_noted, err);
		if (r >= 0 && (gang.name || pod->member))
			r = model_gang_take(m, pod, from, &gang, &gang_broken, err);
	}
	request_free(&request);
	if (r >= 0 && noted_text(from) && !is_noted)
		r = error_set(err, EINVAL,
			      "is annotated with GPU shares but requests none: not counted");
	return r;
}

static int read_and_see(struct model *m, json_t *object, bool is_watched, struct error *err)
{
	cleanup_pod struct kube_pod *from = NULL;
	int r = pod_read(object, &from, err);
	if (r < 0)
		return r;
	r = see(m, from, is_watched, err);
	return r < 0 ? error_sanitize(err, error_add(err, r, "pod %s/%s", from->pod_namespace,
						     from->name))
		     : 0;
}

int model_pod(struct model *m, const json_t *object, struct error *err)
{
	/* Safe: read_and_see() only takes a reference and drops it. */
	return read_and_see(m, (json_t *)(uintptr_t)object, true, err);
}

int model_pod_ahead(struct model *m, json_t *object, struct error *err)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *uid = json_string_value(json_object_get(meta, "uid"));
	if (!uid || model_find_pod(m, uid))
		return 0;
	int r = read_and_see(m, object, false, err);
	struct model_pod *pod = model_find_pod(m, uid);
	if (pod)
		pod->unseen_until_ns = m->now_ns + m->terms.hold_ns;
	return r;
}

void model_pod_gone(struct model *m, const json_t *object)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *uid = json_string_value(json_object_get(meta, "uid"));
	struct model_pod *pod = uid ? model_find_pod(m, uid) : NULL;
	if (pod)
		forget(m, pod);
}

/* ---- reservations ---- */

int model_make_hold(struct model *m, const struct model_pod *pod, struct model_node *node,
		    const struct kube_shares *shares, struct model_hold *ret, struct error *err)
{
	cleanup_free uint8_t *stage = calloc(shares->containers + 1, 1);
	if (!stage)
		return error_set_errno(err, ENOMEM, "reservation");
	for (size_t i = 0; i < pod->request->count; i++) {
		const struct request_part *part = &pod->request->part[i];
		stage[part->container] = (uint8_t)fit_stage(part);
	}
	return make_hold(m, shares, stage, shares->containers, node->name, ret, err);
}

void model_reserve_hold(struct model *m, struct model_pod *pod, struct model_hold *hold)
{
	hold->expires_ns = m->now_ns + m->terms.hold_ns;
	m->changes++;
	model_lift(pod);
	drop_hold(m, &pod->reserved);
	/* The annotations' shares are of an earlier attempt: others may have that room now. */
	drop_hold(m, &pod->noted);
	pod->reserved = *hold;
	*hold = (struct model_hold){ 0 };
	model_put_back(pod);
}

int model_reserve(struct model *m, struct model_pod *pod, struct model_node *node,
		  const struct kube_shares *shares, struct error *err)
{
	struct model_hold hold;
	int r = model_make_hold(m, pod, node, shares, &hold, err);
	if (r >= 0)
		model_reserve_hold(m, pod, &hold);
	return r;
}

void model_drop_reserved(struct model *m, struct model_pod *pod)
{
	if (!pod->reserved.node)
		return;
	if (pod->member)
		pod->member->has_come = pod->member->is_going = false;
	m->changes++;
	model_lift(pod);
	drop_hold(m, &pod->reserved);
	model_put_back(pod);
}

void model_pods_advance(struct model *m)
{
	struct model_pod *next;
	for (struct model_pod *pod = m->open; pod; pod = next) {
		next = pod->next_open;
		if (pod->reserved.expires_ns && pod->reserved.expires_ns <= m->now_ns)
			model_drop_reserved(m, pod);
		if (pod->noted.expires_ns && pod->noted.expires_ns <= m->now_ns) {
			m->changes++;
			model_lift(pod);
			drop_hold(m, &pod->noted);
			model_put_back(pod);
		}
		if (pod->unseen_until_ns && pod->unseen_until_ns <= m->now_ns)
			forget(m, pod);
	}
}

/* ---- full lists ---- */

static void unlist(void *data, void *thing)
{
	struct model_pod *pod = thing;
	pod->is_listed = false;
}

/* Forgets a pod that the list lacks; not a pod from a filter call, which may be newer than the list. */
static void forget_unlisted(void *data, void *thing)
{
	struct model_pod *pod = thing;
	if (!pod->is_listed && !pod->unseen_until_ns)
		forget(data, pod);
}

void model_pods_begin(struct model *m)
{
	string_map_each(&m->pods, unlist, NULL);
}

void model_pods_synced(struct model *m)
{
	string_map_each(&m->pods, forget_unlisted, m);
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
