#include "kube/client/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "kube/util/backoff.h"
#include "kube/util/object.h"

#define PAGE_OBJECTS \
	200 /* objects in a page of a list; halved while a page exceeds KUBE_BODY_MAX */
/* The server ends a watch after a random time in this range, so that clients do not reconnect together. */
#define WATCH_MIN_S 300
#define WATCH_MAX_S 600
/* the client ends a watch that lasts this much longer than requested */
#define WATCH_GRACE_S 30
/* A watch that ends sooner than this, without an event, counts as a failure: the server or a proxy rejects watches. */
#define WATCH_SHORT_NS NSEC_PER_SEC

struct kube_watch {
	struct kube_client *client;
	char *collection, *selector;
	struct watch_handlers on;
	void *data;
	struct kube_call *call; /* NULL while `again` is set */
	struct alarm again;
	struct backoff backoff;
	char *version; /* the resourceVersion at which the watch resumes; NULL: list first */
	char *page;    /* the API's `continue` token for the next page; NULL: the first page */
	unsigned page_objects;
	uint64_t started_ns;
	bool is_fruitful; /* an event came since the last start of the watch */
	bool is_troubled;
	unsigned expired; /* how often the server answered 410 */
	bool is_telling;  /* listed() is calling handlers and will use the watch afterwards */
	bool is_stopped;  /* a handler called by listed() has stopped the watch */
};

static void start_list(void *data);

static void set_text(char **text, const char *value)
{
	char *copy = value ? strdup(value) : NULL;
	free(*text);
	*text = copy;
}

static void fail(struct kube_watch *w, const struct error *err, uint64_t at_least_ns)
{
	w->is_troubled = true;
	alarm_set(kube_client_reactor(w->client), &w->again,
		  backoff_next_ns(&w->backoff, at_least_ns));
	w->on.failed(w->data, err);
}

/* is_worth is false for a watch that has only started: the server may end it at once, so the backoff goes on. */
static void succeed(struct kube_watch *w, bool is_worth)
{
	if (is_worth)
		w->backoff.failures = 0;
	if (!w->is_troubled)
		return;
	w->is_troubled = false;
	w->on.failed(w->data, NULL);
}

/* The server no longer knows w->version or w->page: lists again at once, but every fourth time only after a backoff. */
static void expire(struct kube_watch *w)
{
	w->expired++;
	log_debug("watch of %s: the version %s is too old: the list is read again", w->collection,
		  w->version ? w->version : "of the list's pages");
	set_text(&w->version, NULL);
	set_text(&w->page, NULL);
	alarm_set(kube_client_reactor(w->client), &w->again,
		  w->expired % 4 ? 0 : backoff_next_ns(&w->backoff, 0));
}

static void deliver_page(struct kube_watch *w, json_t *list)
{
	json_t *items = json_object_get(list, "items");
	if (!w->page)
		w->on.list_begun(w->data);
	for (size_t i = 0; i < json_array_size(items) && !w->is_stopped; i++)
		w->on.object(w->data, json_array_get(items, i));
}

static void listed(void *data, const struct kube_answer *answer)
{
	struct kube_watch *w = data;
	struct error err = answer->err;
	const char *version = object_meta_text(answer->object, "resourceVersion");
	w->call = NULL;
	if (!err.code && !version)
		error_set(&err, EPROTO,
			  "GET %s: the answer is not a list of the Kubernetes API (it has no "
			  "resourceVersion): check the address of the API server",
			  w->collection);
	if (answer->status == 410) {
		expire(w);
		return;
	}
	/* Halve the page until it fits. A page of one object always fits. */
	if (err.code == EFBIG && w->page_objects > 1) {
		w->page_objects /= 2;
		alarm_set(kube_client_reactor(w->client), &w->again, 0);
		return;
	}
	if (err.code) {
		/* A list's pages belong together, so the next try starts at the first page. */
		set_text(&w->page, NULL);
		fail(w, &err, answer->retry_after_ns);
		return;
	}
	w->is_telling = true;
	deliver_page(w, answer->object);
	if (answer->bytes < KUBE_BODY_MAX / 4)
		w->page_objects = w->page_objects * 2 < PAGE_OBJECTS ? w->page_objects * 2
								     : PAGE_OBJECTS;
	const char *next = object_meta_text(answer->object, "continue");
	set_text(&w->page, next && *next ? next : NULL);
	if (!w->page)
		set_text(&w->version, version);
	alarm_set(kube_client_reactor(w->client), &w->again, 0);
	bool is_complete = !w->page;
	if (!w->is_stopped)
		succeed(w, true);
	if (!w->is_stopped && is_complete)
		w->on.synced(w->data);
	w->is_telling = false;
	if (w->is_stopped)
		kube_watch_stop(w);
}

static bool request_list(struct kube_watch *w)
{
	cleanup_free char *path = NULL;
	if (asprintf(&path, "%s?limit=%u%s%s%s%s", w->collection, w->page_objects,
		     *w->selector ? "&" : "", w->selector, w->page ? "&continue=" : "",
		     w->page ? w->page : "") < 0)
		path = NULL;
	if (path)
		w->call = kube_call_start(w->client,
					  &(struct kube_request){ .method = "GET", .path = path },
					  NULL, listed, w);
	return w->call != NULL;
}

/* The object of an ERROR event is a Status. */
static void on_error_event(struct kube_watch *w, const json_t *status)
{
	json_int_t code = json_integer_value(json_object_get(status, "code"));
	const char *message = json_string_or(status, "message", "");
	struct error err;
	w->call = kube_call_drop(w->call);
	if (code == 410) {
		expire(w);
		return;
	}
	error_set(&err, EBUSY, "watch of %s: the API server reports error %lld: %.300s",
		  w->collection, (long long)code, message);
	fail(w, &err, 0);
}

static void on_event(void *data, json_t *event)
{
	struct kube_watch *w = data;
	const char *type = json_string_value(json_object_get(event, "type"));
	json_t *object = json_object_get(event, "object");
	const char *version = object_meta_text(object, "resourceVersion");
	if (!event) {
		succeed(w, false);
		return;
	}
	type = type ? type : "";
	if (!strcmp(type, "ERROR")) {
		on_error_event(w, object);
		return;
	}
	w->is_fruitful = true;
	w->backoff.failures = 0;
	if (version)
		set_text(&w->version, version);
	if (!strcmp(type, "BOOKMARK")) {
		return;
	}
	if (!strcmp(type, "DELETED"))
		w->on.deleted(w->data, object);
	else
		w->on.object(w->data, object);
}

static void watch_ended(void *data, const struct kube_answer *answer)
{
	struct kube_watch *w = data;
	bool is_short = clock_now_ns() - w->started_ns < WATCH_SHORT_NS && !w->is_fruitful;
	struct error err = answer->err;
	w->call = NULL;
	if (answer->status == 410) {
		expire(w);
		return;
	}
	if (!err.code && is_short)
		error_set(&err, EBUSY,
			  "watch of %s: the API server, or a proxy before it, ended the watch at "
			  "once: if this goes on, check the API server's log",
			  w->collection);
	if (err.code)
		fail(w, &err, answer->retry_after_ns);
	else
		start_list(w);
}

static bool request_watch(struct kube_watch *w)
{
	cleanup_free char *path = NULL;
	unsigned seconds = WATCH_MIN_S + backoff_random() % (WATCH_MAX_S - WATCH_MIN_S);
	if (asprintf(&path,
		     "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=%s%s%s",
		     w->collection, seconds, w->version, *w->selector ? "&" : "", w->selector) < 0)
		path = NULL;
	w->started_ns = clock_now_ns();
	w->is_fruitful = false;
	struct kube_request request = { .method = "GET",
					.path = path,
					.timeout_ns = (seconds + WATCH_GRACE_S) * NSEC_PER_SEC };
	if (path)
		w->call = kube_call_start(w->client, &request, on_event, watch_ended, w);
	return w->call != NULL;
}

/* Starts the watch at w->version, or requests the list's next page if there is no version yet. */
static void start_list(void *data)
{
	struct kube_watch *w = data;
	struct error err;
	if (w->version ? request_watch(w) : request_list(w))
		return;
	error_set_errno(&err, ENOMEM, "watch of %s", w->collection);
	fail(w, &err, 0);
}

struct kube_watch *kube_watch_start(struct kube_client *client, const char *collection,
				    const char *selector, const struct watch_handlers *handlers,
				    void *data)
{
	struct kube_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	*w = (struct kube_watch){
		.client = client, .on = *handlers, .data = data, .page_objects = PAGE_OBJECTS
	};
	w->again = (struct alarm){ .handler = start_list, .data = w };
	w->collection = strdup(collection);
	w->selector = strdup(selector);
	if (!w->collection || !w->selector)
		return kube_watch_stop(w);
	alarm_set(kube_client_reactor(client), &w->again, 0);
	return w;
}

struct kube_watch *kube_watch_stop(struct kube_watch *w)
{
	if (!w)
		return NULL;
	if (w->is_telling) {
		w->is_stopped = true;
		return NULL;
	}
	alarm_clear(kube_client_reactor(w->client), &w->again);
	kube_call_drop(w->call);
	free(w->collection);
	free(w->selector);
	free(w->version);
	free(w->page);
	free(w);
	return NULL;
}
