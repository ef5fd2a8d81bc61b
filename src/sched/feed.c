#include "sched/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kube/object.h"

#define NOT_ENDED "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"

struct source {
	struct feed *feed;
	enum model_kind kind;
	struct kube_watch *watch;
	bool is_synced, fails;
};

struct feed {
	struct feed_terms terms;
	struct source nodes, pods;
	json_t *told; /* {"pod default/a": why it can't be read}, as it was logged */
	uint64_t refused;
};

/* ---- objects that can't be read: said once, until they say something else ---- */

static char *name_object(const struct source *s, const json_t *object)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *in = json_string_value(json_object_get(meta, "namespace"));
	const char *name = json_string_value(json_object_get(meta, "name"));
	char *text = NULL;
	if (asprintf(&text, "%s %s%s%s", s->kind == MODEL_NODES ? "node" : "pod", in ? in : "",
		     in ? "/" : "", name ? name : "") < 0)
		return NULL;
	return text;
}

/* `why` NULL: it can be read, or is gone. */
static void note(struct source *s, const json_t *object, const struct error *why)
{
	struct feed *feed = s->feed;
	if (!why && !json_object_size(feed->told))
		return;
	cleanup_free char *name = name_object(s, object);
	const char *said = name ? json_string_value(json_object_get(feed->told, name)) : NULL;
	if (!name || (!why && !said) || (why && said && !strcmp(said, why->text)))
		return;
	if (why) {
		log_warning("%s", why->text);
		json_object_set_new(feed->told, name, json_string(why->text));
		return;
	}
	log_info("%s: what it says is understood again, or it is gone", name);
	json_object_del(feed->told, name);
}

/* ---- what the watches tell ---- */

static void begin(void *data)
{
	struct source *s = data;
	model_begin(s->feed->terms.model, s->kind);
}

static void object_came(void *data, json_t *object)
{
	struct source *s = data;
	struct feed *feed = s->feed;
	struct error err = { 0 };
	int r = s->kind == MODEL_NODES ? model_node(feed->terms.model, object, &err)
				       : model_pod(feed->terms.model, object, &err);
	feed->refused += r < 0;
	note(s, object, r < 0 ? &err : NULL);
	if (s->kind == MODEL_NODES && feed->terms.node)
		feed->terms.node(feed->terms.data, object);
}

static void object_gone(void *data, json_t *object)
{
	struct source *s = data;
	const json_t *meta = json_object_get(object, "metadata");
	const char *name = json_string_value(json_object_get(meta, "name"));
	note(s, object, NULL);
	if (s->kind == MODEL_PODS)
		model_pod_gone(s->feed->terms.model, object);
	else if (name)
		model_node_gone(s->feed->terms.model, name);
}

static void synced(void *data)
{
	struct source *s = data;
	struct feed *feed = s->feed;
	bool was_ready = feed_is_ready(feed);
	s->is_synced = true;
	model_synced(feed->terms.model, s->kind);
	if (!was_ready && feed_is_ready(feed) && feed->terms.ready)
		feed->terms.ready(feed->terms.data);
}

/* Both watches fail together when the server is away: that is said once. */
static void trouble(void *data, const struct error *err)
{
	struct source *s = data;
	struct feed *feed = s->feed;
	bool was_troubled = feed_is_troubled(feed);
	s->fails = err != NULL;
	if (err && !was_troubled)
		log_warning("Kubernetes API: %s; it is asked again", err->text);
	else if (err)
		log_debug("Kubernetes API: %s", err->text);
	else if (was_troubled && !feed_is_troubled(feed))
		log_info("Kubernetes API: nodes and pods are told again");
}

/* ---- life ---- */

static struct kube_watch *start(struct feed *feed, struct source *s, enum model_kind kind,
				const char *collection, const char *selector)
{
	static const struct watch_handlers handlers = { .begin = begin,
							.object = object_came,
							.gone = object_gone,
							.synced = synced,
							.trouble = trouble };
	*s = (struct source){ .feed = feed, .kind = kind };
	s->watch = kube_watch_start(feed->terms.client, collection, selector, &handlers, s);
	return s->watch;
}

int feed_start(const struct feed_terms *terms, struct feed **ret)
{
	struct feed *feed = calloc(1, sizeof(*feed));
	if (!feed)
		return -ENOMEM;
	feed->terms = *terms;
	feed->told = json_object();
	if (!feed->told || !start(feed, &feed->nodes, MODEL_NODES, "/api/v1/nodes", "") ||
	    !start(feed, &feed->pods, MODEL_PODS, "/api/v1/pods", NOT_ENDED)) {
		feed_stop(feed);
		return -ENOMEM;
	}
	*ret = feed;
	return 0;
}

struct feed *feed_stop(struct feed *feed)
{
	if (!feed)
		return NULL;
	kube_watch_stop(feed->nodes.watch);
	kube_watch_stop(feed->pods.watch);
	json_decref(feed->told);
	free(feed);
	return NULL;
}

bool feed_is_ready(const struct feed *feed)
{
	return feed->nodes.is_synced && feed->pods.is_synced;
}

bool feed_is_troubled(const struct feed *feed)
{
	return feed->nodes.fails || feed->pods.fails;
}

struct feed_counts feed_counts(const struct feed *feed)
{
	return (struct feed_counts){ .nodes = kube_watch_counts(feed->nodes.watch),
				     .pods = kube_watch_counts(feed->pods.watch),
				     .refused = feed->refused };
}
