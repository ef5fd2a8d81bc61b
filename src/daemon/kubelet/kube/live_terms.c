#include "daemon/kubelet/kube/live_terms.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/api/audit/audit.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/devices/claim_holders.h"
#include "daemon/kubelet/devices/pod_key.h"
#include "daemon/state/node/node.h"
#include "daemon/util/json.h"
#include "kube/client/kube_event.h"
#include "kube/hami/annotations.h"
#include "kube/hami/priority.h"

#define MIB (UINT64_C(1) << 20)

/* The terms that one claim's pod requested last. */
struct seen {
	TAILQ_ENTRY(seen) link;
	char id[TENANT_ID_MAX]; /* id of the claim's tenant */
	/* the inputs of the last call of change(), as text_of() gives them; NULL: none yet */
	char *text;
	bool is_refused; /* the change was refused, and that was logged */
	bool is_there;
};

struct live_terms {
	struct node *node;
	struct kube_client *client;
	const char *name;
	const struct node_pods *pods;
	TAILQ_HEAD(, seen) seen;
};

static int check_count(const char *what, size_t count, unsigned device_count, struct error *err)
{
	if (count <= 1 || count == device_count)
		return 0;
	return error_set(err, EINVAL,
			 KUBE_LIVE_DOMAIN "/%s: %zu values: must be one, or one for each of the "
					  "container's %u GPUs",
			 what, count, device_count);
}

int live_terms_to_override(const struct kube_live *terms, unsigned device_count,
			   struct claim_override *ret, struct error *err)
{
	struct claim_override override = { 0 };
	int r = check_count("memory", terms->memories, device_count, err);
	if (r >= 0)
		r = check_count("cores", terms->cores, device_count, err);
	if (r >= 0)
		r = check_count("cores-limit", terms->limits, device_count, err);
	if (r < 0)
		return r;
	override.has_priority = terms->has_priority;
	override.priority = terms->priority;
	override.has_on_full = terms->on_full &&
			       on_full_parse(terms->on_full, &override.on_full) >= 0;
	for (unsigned i = 0; i < device_count && i < LIVE_VALUES_MAX; i++) {
		struct promise_request *d = &override.device[i];
		d->has_memory = terms->memories > 0;
		d->memory_bytes = terms->memory_bytes[terms->memories > 1 ? i : 0];
		d->has_cores = terms->cores > 0;
		d->cores_pct = terms->cores_pct[terms->cores > 1 ? i : 0];
		d->has_limit = terms->limits > 0;
		d->limit_pct = terms->limit_pct[terms->limits > 1 ? i : 0];
	}
	*ret = override;
	return 0;
}

static void send_event(struct live_terms *live, const struct kube_pod *pod, bool is_warning,
		       const char *reason, const char *message)
{
	const struct event_about about = { "Pod", pod->name, pod->uid, pod->pod_namespace };
	event_send(live->client, &about, is_warning, reason, message, live->name);
}

static void log_change(struct live_terms *live, const struct kube_pod *pod, const char *container,
		       const struct claim *claim)
{
	const struct tenant_terms *t = claim_terms(claim);
	char text[ERROR_TEXT_MAX];
	int n = snprintf(text, sizeof(text), "container %s: priority %d, on-full %s", container,
			 t->priority, on_full_name(t->on_full));
	for (unsigned i = 0; i < t->device_count && n > 0 && (size_t)n < sizeof(text); i++) {
		const struct promise *p = &t->device[i].promise;
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "; GPU %u: %" PRIu64 " MiB, cores %g %%, at most %g %%",
			      t->device[i].card->index, p->quota_bytes / MIB, p->cores_pct,
			      p->limit_pct);
	}
	live->node->live_changes++;
	log_info_of(log_key(pod->pod_namespace), "pod %s/%s, %s", pod->pod_namespace, pod->name,
		    text);
	send_event(live, pod, false, "GPUTermsChanged", text);
}

static void log_refusal(struct live_terms *live, const struct kube_pod *pod, const char *container,
			const char *why)
{
	char text[ERROR_TEXT_MAX];
	snprintf(text, sizeof(text),
		 "container %s: the changed annotations are refused, and the former terms "
		 "stay in force: %.350s",
		 container, why);
	text_clean(text); /* a cut character would make invalid JSON */
	live->node->live_changes_refused++;
	log_warning_of(log_key(pod->pod_namespace), "pod %s/%s, %s", pod->pod_namespace, pod->name,
		       text);
	send_event(live, pod, true, "GPUTermsRefused", text);
}

/*
 * Returns the priority in the container's limits, or NULL. Only for a claim made from slices, because its container was unknown
 * when it was made. Any other claim got its priority when it was made.
 */
static const char *asked_priority(const struct live_terms *live, const struct claim *claim,
				  const struct kube_pod *pod, const char *container)
{
	const char *resource = live->node->config.kube_priority_resource;
	return allocate_is_own_claim(claim)
		       ? pod_limit(pod, pod_find_container(pod, container), resource)
		       : NULL;
}

static int add_priority(const struct live_terms *live, const struct kube_pod *pod,
			const char *container, struct kube_live *terms, struct error *err)
{
	if (terms->has_priority)
		return 0; /* the annotation takes precedence */
	terms->has_priority = true;
	return priority_read(pod, pod_find_container(pod, container),
			     live->node->config.kube_priority_resource, &terms->priority, err);
}

static int change(const struct live_terms *live, struct claim *claim, const struct kube_pod *pod,
		  const char *container, bool *ret_changed, struct error *err)
{
	struct kube_live terms;
	struct claim_override override;
	int r = live_read(pod, container, &terms, err);
	if (r >= 0 && asked_priority(live, claim, pod, container))
		r = add_priority(live, pod, container, &terms, err);
	if (r >= 0)
		r = live_terms_to_override(&terms, claim_terms(claim)->device_count, &override, err);
	return r < 0 ? r : claims_override_terms(claim, &override, ret_changed, err);
}

static struct seen *find_seen(struct live_terms *live, const char *id)
{
	struct seen *s;
	TAILQ_FOREACH(s, &live->seen, link)
		if (!strcmp(s->id, id))
			return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	strcpy(s->id, id);
	TAILQ_INSERT_TAIL(&live->seen, s, link);
	return s;
}

static void forget(struct live_terms *live, struct seen *s)
{
	TAILQ_REMOVE(&live->seen, s, link);
	free(s->text);
	free(s);
}

/* All inputs of change() as one text; NULL if out of memory. */
static char *text_of(const struct live_terms *live, const struct claim *claim,
		     const struct kube_pod *pod, const char *container)
{
	const char *priority = asked_priority(live, claim, pod, container);
	cleanup_free char *annotations = live_text(pod);
	char *text;
	if (!annotations || !priority)
		return steal_pointer(&annotations);
	return asprintf(&text, "%slimits: %s\n", annotations, priority) < 0 ? NULL : text;
}

/* Records the change of terms in the audit log; `refusal` is NULL if the change was made. */
static void note_in_audit(struct audit *audit, const struct claim *claim, const json_t *old,
			  const struct error *refusal)
{
	json_t *what = audit_about(audit, claim->tenant);
	json_t *now = audit_terms(audit, claim->tenant);
	if (what && refusal)
		json_object_set_new(what, "refused", json_clean_string(refusal->text));
	else if (what)
		audit_add_change(what, old, now);
	json_decref(now);
	audit_write(audit, "set", what);
}

static void check_claim(struct live_terms *live, struct claim *claim, const struct kube_pod *pod,
			const char *container, bool again)
{
	struct error err = { 0 };
	bool has_changed = false;
	struct seen *s = find_seen(live, claim_terms(claim)->id);
	cleanup_free char *text = text_of(live, claim, pod, container);
	if (!s || !text)
		return; /* out of memory: the change is retried later */
	s->is_there = true;
	struct audit *audit = live->node->audit;
	const struct audit_actor actor = { .by = AUDIT_BY_KUBERNETES,
					   .pod_namespace = pod->pod_namespace,
					   .pod = pod->name,
					   .pod_uid = pod->uid };
	bool is_new = !s->text || strcmp(s->text, text) != 0;
	/* If the plugin reused the claim for another container, find_same() in allocate.c restored the original terms. */
	bool is_lost = *text && !claim->original && !s->is_refused;
	if (!is_new && !is_lost && !(again && s->is_refused))
		return;
	json_t *old = audit_terms(audit, claim->tenant);
	audit_set_actor(audit, &actor);
	int r = change(live, claim, pod, container, &has_changed, &err);
	if (has_changed || (r < 0 && is_new))
		note_in_audit(audit, claim, old, r < 0 ? &err : NULL);
	audit_set_actor(audit, NULL);
	json_decref(old);
	/* A refused change is retried every 30 s. Log only the first refusal: the numbers in the reason differ each time. */
	if (r < 0 && is_new)
		log_refusal(live, pod, container, err.text);
	if (has_changed)
		log_change(live, pod, container, claim);
	s->is_refused = r < 0;
	if (is_new) {
		free(s->text);
		s->text = steal_pointer(&text);
	}
}

/* NULL if the pod that the claim's key names is not on this node. *ret_container points into *key. */
static const struct kube_pod *pod_by_key(const struct live_terms *live, const struct claim *claim,
					 struct pod_key *key, const char **ret_container)
{
	if (!pod_key_parse(claim_terms(claim)->claim.key, key))
		return NULL;
	*ret_container = key->container;
	return pods_find(live->pods, key->uid);
}

/*
 * The kubelet's list of holders tells the pod and container of a claim made from slices. NULL if the holder is unknown, or its
 * pod is ending: a new pod may have its name.
 */
static const struct kube_pod *pod_by_slices(const struct live_terms *live,
					    const struct claim *claim, const char **ret_container)
{
	struct claim_holder holder;
	if (!claim_holders_find(live->node->claim_holders, claim, &holder))
		return NULL;
	*ret_container = holder.container;
	const struct kube_pod *pod = pods_find_named(live->pods, holder.pod_namespace, holder.pod);
	return pod && !pod->is_terminating ? pod : NULL;
}

static const struct kube_pod *pod_of(const struct live_terms *live, const struct claim *claim,
				     struct pod_key *key, const char **ret_container)
{
	return allocate_is_own_claim(claim) ? pod_by_slices(live, claim, ret_container)
					    : pod_by_key(live, claim, key, ret_container);
}

void live_terms_apply(struct live_terms *live, bool again)
{
	struct seen *s, *next;
	if (!live || !live->node->claims || !pods_are_known(live->pods))
		return;
	TAILQ_FOREACH(s, &live->seen, link)
		s->is_there = false;
	for (struct claim *c = claims_first(live->node->claims); c; c = claims_next(c)) {
		const char *container;
		struct pod_key key;
		if (!c->tenant)
			continue;
		const struct kube_pod *pod = pod_of(live, c, &key, &container);
		if (pod && pod->phase != POD_ENDED)
			check_claim(live, c, pod, container, again);
	}
	for (s = TAILQ_FIRST(&live->seen); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (!s->is_there)
			forget(live, s);
	}
}

struct live_terms *live_terms_start(struct node *node, struct kube_client *client, const char *name,
				    const struct node_pods *pods)
{
	struct live_terms *live = calloc(1, sizeof(*live));
	if (!live)
		return NULL;
	*live = (struct live_terms){ .node = node, .client = client, .name = name, .pods = pods };
	TAILQ_INIT(&live->seen);
	return live;
}

struct live_terms *live_terms_stop(struct live_terms *live)
{
	if (!live)
		return NULL;
	while (!TAILQ_EMPTY(&live->seen))
		forget(live, TAILQ_FIRST(&live->seen));
	free(live);
	return NULL;
}
