#include "cli/explain/explain_claims.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain/explain_pod.h"
#include "cli/explain/explain_text.h"
#include "kube/dra/dra_names.h"
#include "kube/util/quantity.h"

#define MIB (UINT64_C(1) << 20)
#define WHY_MAX 1024

static const json_t *entries_of(const json_t *pod)
{
	return json_object_get(json_object_get(pod, "spec"), "resourceClaims");
}

bool explain_has_claims(const json_t *pod)
{
	return json_array_size(entries_of(pod)) > 0;
}

const char *explain_claim_name(const json_t *pod, const json_t *entry)
{
	const json_t *list = json_object_get(json_object_get(pod, "status"),
					     "resourceClaimStatuses");
	const char *own = explain_word(entry, "resourceClaimName");
	for (size_t i = 0; !*own && i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		if (!strcmp(explain_word(one, "name"), explain_word(entry, "name")))
			own = explain_word(one, "resourceClaimName");
	}
	return own;
}

struct amount {
	uint64_t memory_bytes;
	uint64_t cores_pct;
};

static uint64_t read_amount(const json_t *value, uint64_t otherwise)
{
	uint64_t amount;
	return value && quantity_read(value, INT64_MAX, &amount, NULL) >= 0 ? amount : otherwise;
}

static struct amount amount_of(const json_t *object, struct amount otherwise)
{
	return (struct amount){
		read_amount(json_object_get(object, DRA_MEMORY), otherwise.memory_bytes),
		read_amount(json_object_get(object, DRA_CORES), otherwise.cores_pct)
	};
}

static const char *amount_text(struct amount a, char text[EXPLAIN_AMOUNT_MAX])
{
	char memory[EXPLAIN_AMOUNT_MAX];
	explain_mib((json_int_t)(a.memory_bytes / MIB), memory);
	snprintf(text, EXPLAIN_AMOUNT_MAX, a.cores_pct ? "%.40s and %u %%" : "%.40s", memory,
		 (unsigned)a.cores_pct);
	return text;
}

struct device {
	const json_t *object;
	const char *pool, *name, *node;
};

static const json_t *results_of(const json_t *claim)
{
	const json_t *allocation = json_object_get(json_object_get(claim, "status"), "allocation");
	return json_object_get(json_object_get(allocation, "devices"), "results");
}

static bool is_ours(const json_t *result)
{
	return !strcmp(explain_word(result, "driver"), DRA_DRIVER);
}

static bool is_of(const json_t *result, const struct device *d)
{
	return is_ours(result) && !strcmp(explain_word(result, "pool"), d->pool) &&
	       !strcmp(explain_word(result, "device"), d->name);
}

static uint64_t subtract_or_zero(uint64_t from, uint64_t by)
{
	return from > by ? from - by : 0;
}

static struct amount capacity_of(const struct device *d)
{
	const json_t *c = json_object_get(d->object, "capacity");
	return (struct amount){
		read_amount(json_object_get(json_object_get(c, DRA_MEMORY), "value"), 0),
		read_amount(json_object_get(json_object_get(c, DRA_CORES), "value"), 0)
	};
}

/* Returns what claims have left of the device. A claim without consumedCapacity takes a whole, unshareable device. */
static struct amount left_of(const struct device *d, const json_t *all)
{
	const json_t *items = json_object_get(all, "items");
	struct amount whole = capacity_of(d), left = whole;
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *results = results_of(json_array_get(items, i));
		for (size_t k = 0; k < json_array_size(results); k++) {
			const json_t *one = json_array_get(results, k);
			if (!is_of(one, d))
				continue;
			struct amount used = amount_of(json_object_get(one, "consumedCapacity"),
						       whole);
			left.memory_bytes = subtract_or_zero(left.memory_bytes, used.memory_bytes);
			left.cores_pct = subtract_or_zero(left.cores_pct, used.cores_pct);
		}
	}
	return left;
}

/* A request that names no amount of memory needs the device's default amount or, if there is none, all its memory. */
static struct amount need_of(const struct device *d, const json_t *exactly)
{
	const json_t *c = json_object_get(json_object_get(d->object, "capacity"), DRA_MEMORY);
	const json_t *policy = json_object_get(c, "requestPolicy");
	struct amount all = {
		read_amount(json_object_get(policy, "default"), capacity_of(d).memory_bytes), 0
	};
	return amount_of(json_object_get(json_object_get(exactly, "capacity"), "requests"), all);
}

static bool fits(struct amount need, struct amount left)
{
	return need.memory_bytes <= left.memory_bytes && need.cores_pct <= left.cores_pct;
}

/* Returns the missing fraction of the needed memory, plus the missing fraction of a GPU's time. */
static double missing(struct amount need, struct amount left)
{
	double memory = need.memory_bytes
				? (double)subtract_or_zero(need.memory_bytes, left.memory_bytes) /
					  (double)need.memory_bytes
				: 0;
	return memory + (double)subtract_or_zero(need.cores_pct, left.cores_pct) / 100;
}

struct search {
	size_t devices, nodes, tainted, fitting;
	struct device nearest;
	/* for `nearest`, the device that lacks least: what the request needs, and what the device has left */
	struct amount need, left;
	double missing;
	const char *taint; /* key of the first taint of a tainted device */
};

static void check_device(struct search *s, const struct device *d, const json_t *exactly,
			 const json_t *all)
{
	const json_t *taint = json_array_get(json_object_get(d->object, "taints"), 0);
	struct amount need = need_of(d, exactly), left = left_of(d, all);
	s->devices++;
	if (taint) {
		s->tainted++;
		s->taint = explain_word(taint, "key");
		return;
	}
	s->fitting += fits(need, left);
	if (s->nearest.object && missing(need, left) >= s->missing)
		return;
	s->nearest = *d;
	s->need = need;
	s->left = left;
	s->missing = missing(need, left);
}

static bool has_devices_of(const json_t *slice, const char *node)
{
	const json_t *spec = json_object_get(slice, "spec");
	return json_array_size(json_object_get(spec, "devices")) > 0 &&
	       !strcmp(explain_word(spec, "nodeName"), node);
}

/* Whether slice i is the first slice of its node that has devices. So check_slices() counts each node once. */
static bool is_nodes_first(const json_t *slices, size_t i)
{
	const json_t *slice = json_array_get(slices, i);
	const char *node = explain_word(json_object_get(slice, "spec"), "nodeName");
	size_t before = 0;
	while (before < i && !has_devices_of(json_array_get(slices, before), node))
		before++;
	return before == i && has_devices_of(slice, node);
}

static void check_slices(struct search *s, const json_t *exactly, const struct explain_claims *known)
{
	const json_t *items = json_object_get(known->slices, "items");
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *spec = json_object_get(json_array_get(items, i), "spec");
		const json_t *devices = json_object_get(spec, "devices");
		s->nodes += is_nodes_first(items, i);
		for (size_t k = 0; k < json_array_size(devices); k++) {
			const json_t *one = json_array_get(devices, k);
			const struct device d = {
				one, explain_word(json_object_get(spec, "pool"), "name"),
				explain_word(one, "name"), explain_word(spec, "nodeName")
			};
			check_device(s, &d, exactly, known->all);
		}
	}
}

/*
 * Each function below with a parameter `why` tests one reason for which the pod may wait, and writes it if it holds. If the
 * function returns false, a later test may replace the text by a more exact reason.
 */

static bool is_of_driver(const char *class, const struct explain_claims *known)
{
	const json_t *object = json_object_get(known->classes, class);
	const json_t *selectors = json_object_get(json_object_get(object, "spec"), "selectors");
	for (size_t i = 0; i < json_array_size(selectors); i++) {
		const json_t *cel = json_object_get(json_array_get(selectors, i), "cel");
		if (strstr(explain_word(cel, "expression"), DRA_DRIVER))
			return true;
	}
	return !object && strstr(class, DRA_DRIVER);
}

static bool write_shortage(const struct search *s, const char *claim, const char *request,
			   const struct explain_claims *known, char why[WHY_MAX])
{
	char need[EXPLAIN_AMOUNT_MAX], left[EXPLAIN_AMOUNT_MAX], taints[128] = "";
	const char *plural = s->devices == 1 ? "" : "s";
	if (s->tainted)
		snprintf(taints, sizeof(taints), "; %zu %s tainted (%.80s)", s->tainted,
			 s->tainted == 1 ? "is" : "are", s->taint);
	if (!s->nearest.object)
		snprintf(why, WHY_MAX,
			 "claim %s, request %s: each of the %zu GPU%s that nodes have published is "
			 "tainted (%s)",
			 claim, request, s->devices, plural, s->taint);
	else
		snprintf(why, WHY_MAX,
			 "claim %s, request %s asks for %s, and none of %zu GPU%s on %zu node%s has "
			 "that left: the nearest, %s of node %s, has %s%s%s",
			 claim, request, amount_text(s->need, need), s->devices, plural, s->nodes,
			 s->nodes == 1 ? "" : "s", s->nearest.name, s->nearest.node,
			 amount_text(s->left, left), taints,
			 known->all ? "" : " (you may not read what other claims use)");
	return true;
}

static bool request_has_no_room(const char *claim, const json_t *request,
				const struct explain_claims *known, char why[WHY_MAX])
{
	const json_t *exactly = json_object_get(request, "exactly");
	const json_t *list = json_object_get(request, "firstAvailable");
	const char *name = explain_word(request, "name");
	struct search s = { 0 };
	size_t count = exactly ? 1 : json_array_size(list);
	for (size_t i = 0; i < count; i++) {
		const json_t *one = exactly ? exactly : json_array_get(list, i);
		const char *class = explain_word(one, "deviceClassName");
		if (json_is_null(json_object_get(known->classes, class))) {
			snprintf(why, WHY_MAX, "claim %s, request %s: there is no DeviceClass %s",
				 claim, name, class);
			return true;
		}
		if (!is_of_driver(class, known) || !known->slices)
			return false;
		s.devices = s.nodes = s.tainted = 0;
		check_slices(&s, one, known);
	}
	if (!s.devices) {
		snprintf(why, WHY_MAX,
			 "claim %s, request %s: no node has published GPUs of " DRA_DRIVER
			 " (kubectl get resourceslices)",
			 claim, name);
		return count > 0;
	}
	return !s.fitting && write_shortage(&s, claim, name, known, why);
}

static bool claim_is_not_there(const json_t *entry, const char *name,
			       const struct explain_claims *known, char why[WHY_MAX])
{
	const char *template = explain_word(entry, "resourceClaimTemplateName");
	if (!*name && json_is_false(json_object_get(known->templates, template)))
		snprintf(why, WHY_MAX,
			 "there is no ResourceClaimTemplate %s, from which the pod's claim is to be made",
			 template);
	else if (!*name)
		snprintf(why, WHY_MAX,
			 "the pod's claim %s does not exist yet: kube-controller-manager makes it from the "
			 "ResourceClaimTemplate %s",
			 explain_word(entry, "name"), template);
	else if (json_is_null(json_object_get(known->claims, explain_word(entry, "name"))))
		snprintf(why, WHY_MAX, "there is no ResourceClaim %s", name);
	else
		return false;
	return true;
}

static const char *node_of(const json_t *claim)
{
	const json_t *allocation = json_object_get(json_object_get(claim, "status"), "allocation");
	const json_t *terms = json_object_get(json_object_get(allocation, "nodeSelector"),
					      "nodeSelectorTerms");
	const json_t *fields = json_object_get(json_array_get(terms, 0), "matchFields");
	const char *node = json_string_value(
		json_array_get(json_object_get(json_array_get(fields, 0), "values"), 0));
	return node ? node : "";
}

static bool is_claim_blocking(const json_t *pod, const json_t *entry,
			      const struct explain_claims *known, char why[WHY_MAX])
{
	const char *name = explain_claim_name(pod, entry);
	const json_t *claim = json_object_get(known->claims, explain_word(entry, "name"));
	const json_t *devices = json_object_get(json_object_get(claim, "spec"), "devices");
	const json_t *requests = json_object_get(devices, "requests");
	if (claim_is_not_there(entry, name, known, why))
		return true;
	if (results_of(claim)) {
		snprintf(why, WHY_MAX,
			 "claim %s is allocated on node %s; something other than GPUs keeps the pod "
			 "from running",
			 name, node_of(claim));
		return false;
	}
	for (size_t i = 0; i < json_array_size(requests); i++)
		if (request_has_no_room(name, json_array_get(requests, i), known, why))
			return true;
	if (json_array_size(requests))
		snprintf(why, WHY_MAX,
			 "each request of claim %s alone fits a GPU. Together, or with its selectors and "
			 "constraints, or with the pod's other needs, they fit no node",
			 name);
	return false;
}

/* Whether an event says that the node could not prepare the claims. Writes the text of the last such event. */
static bool is_not_prepared(const struct explain_claims *known, char why[WHY_MAX])
{
	const json_t *items = json_object_get(known->events, "items"), *last = NULL;
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *one = json_array_get(items, i);
		if (!strcmp(explain_word(one, "reason"), "FailedPrepareDynamicResources") &&
		    (!last || explain_compare_events(one, last) >= 0))
			last = one;
	}
	if (!last)
		return false;
	snprintf(why, WHY_MAX, "its node can't prepare its claims: %.900s",
		 explain_word(last, "message"));
	return true;
}

static bool has_started(const json_t *pod)
{
	const char *phase = explain_word(json_object_get(pod, "status"), "phase");
	return *phase && strcmp(phase, "Pending") != 0;
}

static void find_why(const json_t *pod, const struct explain_claims *known, char why[WHY_MAX])
{
	const json_t *entries = entries_of(pod);
	why[0] = '\0';
	if (has_started(pod))
		return;
	if (*explain_word(json_object_get(pod, "spec"), "nodeName")) {
		is_not_prepared(known, why);
		return;
	}
	for (size_t i = 0; i < json_array_size(entries); i++)
		if (is_claim_blocking(pod, json_array_get(entries, i), known, why))
			return;
}

static void add_results(json_t *to, const char *name, const json_t *claim)
{
	const json_t *results = results_of(claim);
	const struct amount none = { 0 };
	for (size_t i = 0; i < json_array_size(results); i++) {
		const json_t *one = json_array_get(results, i);
		const json_t *consumed = json_object_get(one, "consumedCapacity");
		struct amount a = amount_of(consumed, none);
		if (!is_ours(one))
			continue;
		json_t *entry = json_pack("{s:s,s:s,s:s,s:s}", "claim", name, "request",
					  explain_word(one, "request"), "device",
					  explain_word(one, "device"), "pool",
					  explain_word(one, "pool"));
		if (json_object_get(consumed, DRA_MEMORY))
			json_object_set_new(entry, "memory_mib",
					    json_integer((json_int_t)(a.memory_bytes / MIB)));
		json_object_set_new(entry, "cores_pct", json_integer((json_int_t)a.cores_pct));
		json_array_append_new(to, entry);
	}
}

json_t *explain_of_claims(const json_t *pod, const struct explain_claims *known)
{
	const json_t *entries = entries_of(pod);
	char why[WHY_MAX];
	json_t *e = explain_of_pod(pod, known->events, "it asks by ResourceClaims");
	if (!e)
		return NULL;
	json_t *claims = json_array();
	for (size_t i = 0; i < json_array_size(entries); i++) {
		const json_t *entry = json_array_get(entries, i);
		add_results(claims, explain_claim_name(pod, entry),
			    json_object_get(known->claims, explain_word(entry, "name")));
	}
	json_object_set_new(e, "claims", claims);
	find_why(pod, known, why);
	if (why[0])
		json_object_set_new(e, "why", json_string(why));
	return e;
}
