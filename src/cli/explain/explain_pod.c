#include "cli/explain/explain_pod.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/explain/explain_text.h"
#include "kube/hami/annotations.h"
#include "kube/hami/shares.h"

#define EVENTS_KEPT 8

static const json_t *meta_of(const json_t *object)
{
	return json_object_get(object, "metadata");
}

static const char *annotation(const json_t *pod, const char *name)
{
	return explain_word(json_object_get(meta_of(pod), "annotations"), name);
}

static void add_names(json_t *to, const json_t *containers)
{
	for (size_t i = 0; i < json_array_size(containers); i++)
		json_array_append_new(
			to, json_string(explain_word(json_array_get(containers, i), "name")));
}

static const char *scheduled_text(const json_t *pod)
{
	const json_t *list = json_object_get(json_object_get(pod, "status"), "conditions");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		if (!strcmp(explain_word(one, "type"), "PodScheduled") &&
		    !strcmp(explain_word(one, "status"), "False"))
			return explain_word(one, "message");
	}
	return "";
}

void explain_add_pod(json_t *e, const json_t *pod)
{
	const json_t *spec = json_object_get(pod, "spec");
	const char *phase = annotation(pod, KUBE_POD_BIND_PHASE), *scheduled = scheduled_text(pod);
	json_t *names = json_array();
	add_names(names, json_object_get(spec, "initContainers"));
	add_names(names, json_object_get(spec, "containers"));
	json_object_set_new(e, "containers", names);
	if (*phase)
		json_object_set_new(e, "bind_phase", json_string(phase));
	if (*scheduled)
		json_object_set_new(e, "scheduled", json_string(scheduled));
}

/* borrowed_pct: the percent of a GPU's time that an opportunistic pod may use while others leave it unused. */
static void read_borrowed(const json_t *pod, struct kube_shares *shares)
{
	struct kube_shares borrowed = { 0 };
	if (shares_parse(annotation(pod, KUBE_LIVE_DOMAIN "/" KUBE_BORROWED), &borrowed, NULL) < 0)
		return;
	for (size_t i = 0; i < shares->count && borrowed.count; i++)
		shares->share[i].borrowed_pct = shares_borrowed(&borrowed, &shares->share[i]);
	shares_free(&borrowed);
}

static json_t *list_shares(const json_t *pod)
{
	struct kube_shares shares;
	const char *text = annotation(pod, KUBE_POD_ALLOCATED);
	const json_t *spec = json_object_get(pod, "spec");
	size_t init = json_array_size(json_object_get(spec, "initContainers"));
	size_t others = json_array_size(json_object_get(spec, "containers"));
	json_t *list = json_array();
	if (shares_parse_of(text, init, init + others, &shares, NULL) < 0)
		return list;
	read_borrowed(pod, &shares);
	for (size_t i = 0; i < shares.count; i++) {
		const struct kube_share *s = &shares.share[i];
		json_t *one = json_pack("{s:i,s:s,s:I,s:i}", "container", (int)s->container, "card",
					s->card, "memory_mib", (json_int_t)s->memory_mib,
					"cores_pct", (int)s->cores_pct);
		if (s->borrowed_pct)
			json_object_set_new(one, "lent_pct", json_integer((int)s->borrowed_pct));
		json_array_append_new(list, one);
	}
	shares_free(&shares);
	return list;
}

static const char *state_of(const json_t *pod)
{
	if (json_object_get(meta_of(pod), "deletionTimestamp"))
		return "ending";
	if (*explain_word(json_object_get(pod, "spec"), "nodeName"))
		return "bound";
	return *annotation(pod, KUBE_POD_NODE) &&
			       !strcmp(annotation(pod, KUBE_POD_BIND_PHASE), "allocating")
		       ? "reserved"
		       : "waiting";
}

/* The result is in RFC 3339. It is the latest time if the event came several times. */
static const char *time_of(const json_t *event)
{
	const char *last = explain_word(event, "lastTimestamp");
	const char *again = explain_word(json_object_get(event, "series"), "lastObservedTime");
	const char *once = explain_word(event, "eventTime");
	return *last    ? last
	       : *again ? again
	       : *once  ? once
			: explain_word(meta_of(event), "creationTimestamp");
}

int explain_compare_events(const json_t *one, const json_t *other)
{
	const char *a = time_of(one), *b = time_of(other);
	/* Compare the texts without the "Z". Within one second, the longer text has more decimals, so it is later. */
	size_t a_length = strcspn(a, "Z"), b_length = strcspn(b, "Z");
	int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
	return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_times(const void *a, const void *b)
{
	const json_t *const *one = a, *const *other = b;
	return explain_compare_events(*one, *other);
}

static json_t *list_events(const json_t *events)
{
	const json_t *items = json_object_get(events, "items");
	size_t count = json_array_size(items);
	json_t *list = json_array();
	cleanup_free const json_t **by_time = calloc(count + 1, sizeof(*by_time));
	for (size_t i = 0; by_time && i < count; i++)
		by_time[i] = json_array_get(items, i);
	if (by_time && count)
		qsort((void *)by_time, count, sizeof(*by_time), compare_times);
	for (size_t i = count > EVENTS_KEPT ? count - EVENTS_KEPT : 0; by_time && i < count; i++)
		json_array_append_new(list,
				      json_pack("{s:s,s:s,s:s}", "time", time_of(by_time[i]),
						"reason", explain_word(by_time[i], "reason"),
						"message", explain_word(by_time[i], "message")));
	return list;
}

json_t *explain_of_pod(const json_t *pod, const json_t *events, const char *why)
{
	const char *node = explain_word(json_object_get(pod, "spec"), "nodeName");
	json_t *e = json_pack("{s:s,s:s,s:s,s:s,s:s}", "namespace",
			      explain_word(meta_of(pod), "namespace"), "pod",
			      explain_word(meta_of(pod), "name"), "uid",
			      explain_word(meta_of(pod), "uid"), "state", state_of(pod),
			      "not_asked", why);
	if (!e)
		return NULL;
	if (strcmp(state_of(pod), "waiting") != 0) {
		json_object_set_new(e, "on",
				    json_string(*node ? node : annotation(pod, KUBE_POD_NODE)));
		json_object_set_new(e, "shares", list_shares(pod));
	}
	explain_add_pod(e, pod);
	if (events)
		json_object_set_new(e, "events", list_events(events));
	return e;
}
