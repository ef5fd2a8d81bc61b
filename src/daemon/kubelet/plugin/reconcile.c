#include "daemon/kubelet/plugin/reconcile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/devices/claim_holders.h"
#include "daemon/kubelet/devices/pod_key.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/kube/pods.h"
#include "daemon/kubelet/plugin/plugin_inside.h"
#include "daemon/kubelet/plugin/allocate_vcuda.h"
#include "daemon/kubelet/plugin/vcuda_request.h"
#include "kube/hami/shares.h"

/* A difference between the kubelet's list, the pods' annotations and our claims. */
struct difference {
	TAILQ_ENTRY(difference) link;
	uint64_t answer; /* number of the kubelet's last answer that showed the difference */
	bool is_logged;
	char text[ERROR_TEXT_MAX];
};

struct reconciler {
	TAILQ_HEAD(, difference) differences;
	uint64_t answer;
	struct reconcile_figures figures;
};

/* If `r` is an error, puts the holder and its number of devices in front of err's text, and returns -EEXIST; else 0. */
static int differs(const struct pod_holder *holder, struct error *err, int r)
{
	return r < 0 ? error_add(err, -EEXIST,
				 "kubelet: pod %.64s/%.64s, container %.64s has %zu device(s), "
				 "starting with '%.64s'",
				 holder->pod_namespace, holder->pod, holder->container,
				 holder->count, holder->id[0])
		     : 0;
}

static struct slice_set set_of(const struct slices *slices, const struct claim *claim)
{
	const struct tenant_terms *terms = claim_terms(claim);
	struct slice_set set = { 0 };
	for (unsigned i = 0; i < slices->card_count; i++)
		for (unsigned d = 0; d < terms->device_count; d++)
			if (!strcmp(slices->uuid[i], claim_uuid(claim, d)))
				set.card[i] = terms->device[d].slots;
	return set;
}

int reconcile_slices(const struct slices *slices, struct claims *claims,
		     const struct pod_holder *holder, struct claim **ret_claim, struct error *err)
{
	struct slice_set held = { 0 };
	for (size_t i = 0; i < holder->count; i++) {
		unsigned card, number;
		int r = slice_parse(slices, holder->id[i], &card, &number, err);
		if (r < 0)
			return differs(holder, err, r);
		slots_add(&held.card[card], number);
	}
	for (struct claim *c = claims_first(claims); c; c = claims_next(c)) {
		if (!allocate_has(slices, c, &held))
			continue;
		struct slice_set claimed = set_of(slices, c);
		if (!memcmp(&held, &claimed, sizeof(held))) {
			*ret_claim = c;
			return 0;
		}
		return differs(
			holder, err,
			error_set(err, EEXIST,
				  "allotd: claim '%s' (tenant '%s') has only some of the container's devices, or has other devices too",
				  claim_terms(c)->claim.key, claim_terms(c)->name));
	}
	return differs(holder, err, error_set(err, EEXIST, "allotd: no claim has these devices"));
}

static bool claim_has_card(const struct claim *claim, const char *uuid)
{
	for (unsigned i = 0; i < claim_terms(claim)->device_count; i++)
		if (!strcmp(claim_uuid(claim, i), uuid))
			return true;
	return false;
}

static int check_shares(const struct kube_share *share, size_t count, const struct claim *claim,
			const struct pod_holder *holder, struct error *err)
{
	if (count != holder->count)
		return error_set(err, EEXIST, KUBE_POD_ALLOCATED ": %zu shares", count);
	if (!claim)
		return error_set(err, EEXIST, "allotd: this container has no claim");
	for (size_t i = 0; i < count; i++)
		if (!claim_has_card(claim, share[i].card))
			return error_set(err, EEXIST,
					 KUBE_POD_ALLOCATED ": a share of %.64s; allotd: claim '%s' "
							    "has no share of that GPU",
					 share[i].card, claim_terms(claim)->claim.key);
	for (unsigned d = 0; d < claim_terms(claim)->device_count; d++) {
		size_t i = 0;
		while (i < count && strcmp(share[i].card, claim_uuid(claim, d)) != 0)
			i++;
		if (i == count)
			return error_set(err, EEXIST,
					 "allotd: claim '%s' has a share of %s; " KUBE_POD_ALLOCATED
					 ": no share of that GPU",
					 claim_terms(claim)->claim.key, claim_uuid(claim, d));
	}
	return 0;
}

int reconcile_shares(const struct kube_pod *pod, struct claims *claims,
		     const struct pod_holder *holder, struct claim **ret_claim, struct error *err)
{
	char key[TENANT_CLAIM_MAX];
	struct kube_shares shares;
	size_t container = pod_find_container(pod, holder->container), count;
	struct claim *claim = NULL;
	if (container < pod->containers && pod_key_make(pod, container, NULL, key, NULL) >= 0)
		claim = claims_find(claims, key);
	/* Claims made by an earlier version have keys without an init container's stage. */
	snprintf(key, sizeof(key), POD_KEY "%s/%s", pod->uid, holder->container);
	if (!claim)
		claim = claims_find(claims, key);
	*ret_claim = claim;
	if (!pod->allocated)
		return differs(holder, err, error_set(err, EEXIST, KUBE_POD_ALLOCATED ": missing"));
	int r = shares_parse_of(pod->allocated, pod->init_containers, pod->containers, &shares, err);
	if (r < 0)
		return differs(holder, err, error_add(err, r, KUBE_POD_ALLOCATED));
	const struct kube_share *share = shares_of(&shares, container, &count);
	r = check_shares(share, count, claim, holder, err);
	shares_free(&shares);
	return differs(holder, err, r);
}

/* Finds a claim with a device of the holder, preferably a claim of the holder's pod. Returns NULL if there is none. */
static struct claim *find_by_device(struct claims *claims, const char *uid,
				    const struct pod_holder *holder)
{
	struct claim *found = NULL;
	for (struct claim *c = claims_first(claims); c; c = claims_next(c)) {
		struct pod_key key;
		if (!pod_key_parse(claim_terms(c)->claim.key, &key) || !key.device)
			continue;
		size_t i = 0;
		while (i < holder->count && strcmp(holder->id[i], key.device) != 0)
			i++;
		if (i == holder->count)
			continue;
		if (!strcmp(key.uid, uid) && !strcmp(key.container, holder->container))
			return c;
		/* `c` may be an init container's, whose devices the kubelet gives to the pod's other containers. */
		if (!found || !strcmp(key.uid, uid))
			found = c;
	}
	return found;
}

int reconcile_cores(const struct slices *slices, const struct vcuda_names *names,
		    const struct kube_pod *pod, struct claims *claims,
		    const struct pod_holder *holder, struct claim **ret_claim,
		    size_t *ret_container, struct error *err)
{
	struct vcuda_request ask = { 0 };
	size_t container = 0;
	while (container < pod->containers && strcmp(pod->container[container], holder->container))
		container++;
	struct claim *claim = find_by_device(claims, pod->uid, holder);
	*ret_claim = claim;
	*ret_container = container;
	int r = 0;
	if (!claim)
		r = error_set(err, EEXIST, "allotd: no claim has these devices");
	else if (container == pod->containers)
		r = error_set(err, EEXIST,
			      "the pod has no container with the name that the kubelet reports");
	else if ((r = vcuda_request_read(pod, container, names, &ask, err)) < 0)
		error_add(err, r, "pod");
	else if (ask.cores != holder->count || !vcuda_request_matches(claim, &ask))
		r = error_set(
			err, EEXIST,
			"the container asks for %u %s and %u %s; allotd: claim '%s' (tenant '%s') "
			"has other amounts",
			ask.cores, names->cores, ask.units, names->memory,
			claim_terms(claim)->claim.key, claim_terms(claim)->name);
	return differs(holder, err, r);
}

struct pass {
	struct reconciler *reconciler;
	struct plugin *plugin;
	/* claims of containers on the kubelet's list, even if claim and list differ in devices; has space for all claims */
	struct claim **matched;
	size_t matched_count;
	/* in gpu-manager's vocabulary: claims and their holders; has space for all claims */
	struct owner *owner;
	size_t owner_count, room;
};

/* The container that holds a claim, according to the kubelet's list. */
struct owner {
	struct claim *claim;
	const struct kube_pod *pod;
	size_t container;
};

static void note(struct reconciler *a, const char *what)
{
	char text[ERROR_TEXT_MAX];
	struct difference *d;
	snprintf(text, sizeof(text), "%s", what);
	text_clean(text);
	TAILQ_FOREACH(d, &a->differences, link)
		if (!strcmp(d->text, text))
			break;
	if (!d) {
		d = calloc(1, sizeof(*d));
		if (!d)
			return;
		memcpy(d->text, text, sizeof(text));
		TAILQ_INSERT_TAIL(&a->differences, d, link);
	} else if (!d->is_logged && d->answer != a->answer) {
		d->is_logged = true;
		a->figures.now++;
		a->figures.ever++;
		log_error("device plugin: kubelet, pod and allotd disagree: %s; delete the pod, "
			  "so that another is made",
			  d->text);
	}
	d->answer = a->answer;
}

static const struct node_pods *pods_of(const struct plugin *plugin)
{
	return plugin->annotated ? node_kube_pods(plugin->node->kube) : NULL;
}

/* An init container's claim stays with it, even while another container of the pod uses the claim. */
static bool is_of_init(const struct claim *claim, const struct kube_pod *pod)
{
	for (size_t i = 0; i < pod->init_containers; i++)
		if (pod_key_is_of(claim_terms(claim)->claim.key, pod->uid, pod->container[i]))
			return true;
	return false;
}

static int check_cores(struct pass *pass, const struct kube_pod *pod,
		       const struct pod_holder *holder, struct claim **ret_claim, struct error *err)
{
	const struct plugin *plugin = pass->plugin;
	struct vcuda_names names = vcuda_names(plugin->vcuda);
	struct owner owner = { .pod = pod };
	int r = reconcile_cores(&plugin->slices, &names, pod, plugin->node->claims, holder,
				ret_claim, &owner.container, err);
	owner.claim = *ret_claim;
	if (r >= 0 && !is_of_init(owner.claim, pod) && pass->owner_count < pass->room)
		pass->owner[pass->owner_count++] = owner;
	return r;
}

/* read_ns: when the kubelet's answer was requested */
static void attribute(struct pass *pass, uint64_t read_ns)
{
	struct plugin *plugin = pass->plugin;
	for (size_t i = 0; i < pass->owner_count; i++) {
		const struct owner *o = &pass->owner[i];
		struct error err = { 0 };
		/* The claim is newer than the kubelet's answer, which may show the devices' previous holders. */
		if (read_ns < o->claim->known_ns)
			continue;
		int r = vcuda_attribute(plugin->vcuda, o->claim, o->pod, o->container, &err);
		pass->reconciler->figures.reattributions += r > 0;
		if (r < 0)
			note(pass->reconciler, err.text);
	}
}

static void check_holder(void *data, const struct pod_holder *holder)
{
	struct pass *pass = data;
	struct plugin *plugin = pass->plugin;
	struct claim *claim = NULL;
	struct error err = { 0 };
	int r;
	if (plugin->annotated) {
		/* The kubelet lists a pod for a while after the API server has removed it. */
		const struct kube_pod *pod = pods_find_named(pods_of(plugin), holder->pod_namespace,
							     holder->pod);
		if (!pod || pod->is_terminating || pod->phase == POD_ENDED)
			return;
		r = plugin->vcuda
			    ? check_cores(pass, pod, holder, &claim, &err)
			    : reconcile_shares(pod, plugin->node->claims, holder, &claim, &err);
	} else {
		r = reconcile_slices(&plugin->slices, plugin->node->claims, holder, &claim, &err);
		if (r >= 0)
			claim_holders_note(plugin->holders, claim, holder, pass->reconciler->answer);
	}
	if (r < 0)
		note(pass->reconciler, err.text);
	for (size_t i = 0; claim && i < pass->matched_count; i++)
		if (pass->matched[i] == claim)
			claim = NULL;
	if (claim)
		pass->matched[pass->matched_count++] = claim;
}

/*
 * The kubelet must list a holder if the claim's pod runs or, for a claim made from slices, if a process lives in the claim. But
 * it does not list init containers that have ended.
 */
static bool is_to_be_held(const struct plugin *plugin, const struct claim *claim)
{
	struct pod_key key;
	if (!plugin->annotated || !pod_key_parse(claim_terms(claim)->claim.key, &key))
		return allocate_is_own_claim(claim) && allocate_is_in_use(claim);
	const struct kube_pod *pod = pods_find(pods_of(plugin), key.uid);
	if (!pod || pod->phase != POD_RUNNING || pod->is_terminating)
		return false;
	for (size_t k = pod->init_containers; k < pod->containers; k++)
		if (!strcmp(key.container, pod->container[k]))
			return true;
	return false;
}

static void check_claim(const struct pass *pass, const struct claim *claim)
{
	char text[ERROR_TEXT_MAX];
	for (size_t i = 0; i < pass->matched_count; i++)
		if (pass->matched[i] == claim)
			return;
	if (!is_to_be_held(pass->plugin, claim))
		return;
	snprintf(text, sizeof(text),
		 "allotd: claim '%s' (tenant '%s') is in use; kubelet: no container holds "
		 "exactly the devices of that claim",
		 claim_terms(claim)->claim.key, claim_terms(claim)->name);
	note(pass->reconciler, text);
}

static void forget_old(struct reconciler *a)
{
	struct difference *d, *next;
	for (d = TAILQ_FIRST(&a->differences); d; d = next) {
		next = TAILQ_NEXT(d, link);
		if (d->answer == a->answer)
			continue;
		if (d->is_logged) {
			a->figures.now--;
			log_info("device plugin: kubelet, pod and allotd agree again; the difference "
				 "was: %s",
				 d->text);
		}
		TAILQ_REMOVE(&a->differences, d, link);
		free(d);
	}
}

void reconcile_run(struct reconciler *a, struct plugin *plugin)
{
	struct claims *claims = plugin->node->claims;
	uint64_t read_ns;
	if (!a || !plugin->pods || pod_resources_answers(plugin->pods) == a->answer ||
	    (plugin->annotated && !pods_are_known(pods_of(plugin))))
		return;
	cleanup_free struct claim **matched = calloc(claims_count(claims) + 1, sizeof(*matched));
	cleanup_free struct owner *owner = calloc(claims_count(claims) + 1, sizeof(*owner));
	struct pass pass = { .reconciler = a,
			     .plugin = plugin,
			     .matched = matched,
			     .owner = owner,
			     .room = claims_count(claims) };
	if (!matched || !owner)
		return;
	if (!pod_resources_each(plugin->pods, check_holder, &pass, &a->answer, &read_ns))
		return;
	attribute(&pass, read_ns);
	for (struct claim *c = claims_first(claims); c; c = claims_next(c))
		check_claim(&pass, c);
	forget_old(a);
	claim_holders_end(plugin->holders, a->answer);
	if (plugin->node->kube)
		node_kube_claims_changed(plugin->node->kube);
}

struct reconciler *reconcile_new(void)
{
	struct reconciler *a = calloc(1, sizeof(*a));
	if (a)
		TAILQ_INIT(&a->differences);
	return a;
}

struct reconciler *reconcile_free(struct reconciler *a)
{
	struct difference *d;
	if (!a)
		return NULL;
	while ((d = TAILQ_FIRST(&a->differences))) {
		TAILQ_REMOVE(&a->differences, d, link);
		free(d);
	}
	free(a);
	return NULL;
}

struct reconcile_figures reconcile_figures(const struct reconciler *a)
{
	return a ? a->figures : (struct reconcile_figures){ 0 };
}
