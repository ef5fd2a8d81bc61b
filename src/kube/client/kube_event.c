#include "kube/client/kube_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "kube/util/timestamp.h"

/* An object's events are in its namespace. A node has none; its events are in this namespace. */
#define NODE_EVENTS "default"
#define PATH_SIZE 600 /* fits Kubernetes names of 63 and 253 bytes */

static void event_answered(void *data, const struct kube_answer *answer)
{
	if (answer->err.code)
		log_debug("event: %s", answer->err.text);
}

static const char *space_of(const struct event_about *about)
{
	return about->in_namespace ? about->in_namespace : NODE_EVENTS;
}

/* If `name` is NULL, the server makes a name. */
static struct kube_call *post(const char *component, struct kube_client *client,
			      const struct event_about *about, const struct event_text *text,
			      const char *name, kube_done done, void *data)
{
	const char *in = space_of(about);
	char path[PATH_SIZE], now[TIMESTAMP_MAX];
	timestamp_format_rfc3339((int64_t)time(NULL), now);
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", in);
	cleanup_json json_t *event = json_pack(
		"{s:s,s:s,s:{s:o,s:s},s:{s:s,s:s,s:s,s:s,s:s*},s:s,s:s,s:s,s:{s:s,s:s*},s:s,s:s,s:"
		"i}",
		"apiVersion", "v1", "kind", "Event", "metadata", name ? "name" : "generateName",
		name ? json_string(name) : json_sprintf("%.200s.", about->name), "namespace", in,
		"involvedObject", "kind", about->kind, "apiVersion", "v1", "name", about->name,
		"uid", about->uid, "namespace", about->in_namespace, "type",
		text->is_warning ? "Warning" : "Normal", "reason", text->reason, "message",
		text->message, "source", "component", component, "host", text->host,
		"firstTimestamp", now, "lastTimestamp", now, "count", 1);
	cleanup_free char *body = event ? json_dumps(event, JSON_COMPACT) : NULL;
	struct kube_request request = {
		.method = "POST", .path = path, .type = KUBE_JSON, .body = body
	};
	return body ? kube_call_start(client, &request, NULL, done, data) : NULL;
}

void event_send_as(const char *component, struct kube_client *client,
		   const struct event_about *about, bool is_warning, const char *reason,
		   const char *message, const char *host)
{
	const struct event_text text = { is_warning, reason, message, host };
	post(component, client, about, &text, NULL, event_answered, NULL);
}

void event_send(struct kube_client *client, const struct event_about *about, bool is_warning,
		const char *reason, const char *message, const char *host)
{
	event_send_as("allotd", client, about, is_warning, reason, message, host);
}

/* As client-go does: the object's name and the time. */
void event_make_name(const struct event_about *about, char ret[EVENT_NAME_MAX])
{
	snprintf(ret, EVENT_NAME_MAX, "%.200s.%016" PRIx64, about->name,
		 clock_read_ns(CLOCK_REALTIME));
}

struct kube_call *event_create(const char *component, struct kube_client *client,
			       const struct event_about *about, const struct event_text *text,
			       const char *name, kube_done done, void *data)
{
	return post(component, client, about, text, name, done, data);
}

struct kube_call *event_repeat(struct kube_client *client, const struct event_about *about,
			       const char *message, const char *name, uint64_t count,
			       kube_done done, void *data)
{
	char path[PATH_SIZE], now[TIMESTAMP_MAX];
	timestamp_format_rfc3339((int64_t)time(NULL), now);
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events/%s", space_of(about), name);
	cleanup_json json_t *patch = json_pack("{s:I,s:s,s:s}", "count", (json_int_t)count,
					       "lastTimestamp", now, "message", message);
	cleanup_free char *body = patch ? json_dumps(patch, JSON_COMPACT) : NULL;
	const struct kube_request request = {
		.method = "PATCH", .path = path, .type = KUBE_MERGE_PATCH, .body = body
	};
	return body ? kube_call_start(client, &request, NULL, done, data) : NULL;
}
