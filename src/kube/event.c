#include "kube/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kube/object.h"
#include "kube/when.h"

/* An object's events are in its own namespace; those of a node in this one. */
#define NODE_EVENTS "default"

static void told(void *data, const struct kube_answer *answer)
{
	if (answer->err.code)
		log_debug("event: %s", answer->err.text);
}

void event_tell_as(const char *component, struct kube_client *client,
		   const struct event_about *about, bool is_warning, const char *reason,
		   const char *message, const char *host)
{
	const char *in = about->in_namespace ? about->in_namespace : NODE_EVENTS;
	char path[400], now[WHEN_MAX];
	when_format_rfc3339((int64_t)time(NULL), now);
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", in);
	cleanup_object json_t *event = json_pack(
		"{s:s,s:s,s:{s:o,s:s},s:{s:s,s:s,s:s,s:s,s:s*},s:s,s:s,s:s,s:{s:s,s:s*},s:s,s:s,s:"
		"i}",
		"apiVersion", "v1", "kind", "Event", "metadata", "generateName",
		json_sprintf("%.200s.", about->name), "namespace", in, "involvedObject", "kind",
		about->kind, "apiVersion", "v1", "name", about->name, "uid", about->uid,
		"namespace", about->in_namespace, "type", is_warning ? "Warning" : "Normal",
		"reason", reason, "message", message, "source", "component", component, "host",
		host, "firstTimestamp", now, "lastTimestamp", now, "count", 1);
	cleanup_free char *body = event ? json_dumps(event, JSON_COMPACT) : NULL;
	struct kube_request request = {
		.method = "POST", .path = path, .type = KUBE_JSON, .body = body
	};
	if (body)
		kube_call_start(client, &request, NULL, told, NULL);
}

void event_tell(struct kube_client *client, const struct event_about *about, bool is_warning,
		const char *reason, const char *message, const char *host)
{
	event_tell_as("allotd", client, about, is_warning, reason, message, host);
}
