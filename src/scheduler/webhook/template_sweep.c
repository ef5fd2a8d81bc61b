#include "scheduler/webhook/template_sweep.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "kube/dra/dra_names.h"
#include "kube/util/timestamp.h"
#include "scheduler/webhook/webhook.h"

#define SWEEP_NS (600 * NSEC_PER_SEC)
#define FIRST_NS (2 * NSEC_PER_SEC)
#define PAGE "limit=200"
#define TEMPLATES \
	DRA_API "/resourceclaimtemplates?" PAGE \
		"&labelSelector=app.kubernetes.io%2Fmanaged-by%3D" WEBHOOK_MANAGER
#define NAME_MAX_BYTES 320 /* fits a namespace and an object's name */

struct template_sweep {
	struct kube_client *client;
	bool (*may_act)(void *data);
	void *data;
	struct alarm again;
	struct kube_call *call; /* NULL while the alarm is set */
	json_t *old;            /* metadata of old templates that pods read so far do not name */
	/* the namespace whose pods are read and whose unused templates are then deleted */
	char *in_namespace;
	unsigned removed;
	struct error err; /* the first error of this sweep */
	bool is_logged;   /* the last sweep failed: log the next failure as debug */
};

static const char *text(const json_t *object, const char *name)
{
	const char *found = json_string_value(json_object_get(object, name));
	return found ? found : "";
}

static bool is_in(const struct template_sweep *s, const json_t *metadata)
{
	return !strcmp(text(metadata, "namespace"), s->in_namespace);
}

static void end(struct template_sweep *s)
{
	if (s->removed)
		log_info("removed %u ResourceClaimTemplates that no pod uses", s->removed);
	if (s->err.code)
		log_write(s->is_logged ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
			  "ResourceClaimTemplates that no pod uses can't be removed: %s; trying again",
			  s->err.text);
	s->is_logged = s->err.code != 0;
	alarm_set(kube_client_reactor(s->client), &s->again, SWEEP_NS);
}

static void note(struct template_sweep *s, const struct error *err)
{
	if (!s->err.code)
		s->err = *err;
}

static void send_request(struct template_sweep *s, const char *method, const char *path,
			 const char *body, kube_done done)
{
	const struct kube_request request = {
		.method = method, .path = path, .type = body ? KUBE_JSON : NULL, .body = body
	};
	s->call = kube_call_start(s->client, &request, NULL, done, s);
	if (s->call)
		return;
	error_set_errno(&s->err, ENOMEM, "a call");
	end(s);
}

/* Requests the list's next page. Returns false after the last page. */
static bool request_next_page(struct template_sweep *s, const char *path, const json_t *list,
			      kube_done done)
{
	const char *next = text(json_object_get(list, "metadata"), "continue");
	char *on;
	if (!*next)
		return false;
	if (asprintf(&on, "%s&continue=%s", path, next) < 0) {
		error_set_errno(&s->err, ENOMEM, "a page");
		end(s);
		return true;
	}
	send_request(s, "GET", on, NULL, done);
	free(on);
	return true;
}

static void next_namespace(struct template_sweep *s);

static void delete_next(struct template_sweep *s);

static void deleted(void *data, const struct kube_answer *answer)
{
	struct template_sweep *s = data;
	s->call = NULL;
	/* NOT_FOUND and CONFLICT are no errors: another replica deleted the template, or a pod has just requested it. */
	if (!answer->err.code)
		s->removed++;
	else if (answer->status != HTTP_NOT_FOUND && answer->status != HTTP_CONFLICT)
		note(s, &answer->err);
	delete_next(s);
}

static void delete_template(struct template_sweep *s, const json_t *metadata)
{
	char path[2 * NAME_MAX_BYTES];
	cleanup_json json_t *options = json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1",
						 "kind", "DeleteOptions", "preconditions", "uid",
						 text(metadata, "uid"), "resourceVersion",
						 text(metadata, "resourceVersion"));
	cleanup_free char *body = json_dumps(options, JSON_COMPACT);
	snprintf(path, sizeof(path), DRA_API "/namespaces/%s/resourceclaimtemplates/%s",
		 s->in_namespace, text(metadata, "name"));
	if (body) {
		send_request(s, "DELETE", path, body, deleted);
		return;
	}
	error_set_errno(&s->err, ENOMEM, "DeleteOptions");
	end(s);
}

static void delete_next(struct template_sweep *s)
{
	json_t *metadata;
	size_t i;
	json_array_foreach(s->old, i, metadata)
	{
		if (!is_in(s, metadata))
			continue;
		json_incref(metadata);
		json_array_remove(s->old, i);
		delete_template(s, metadata);
		json_decref(metadata);
		return;
	}
	next_namespace(s);
}

/* Removes the template `name` of s->in_namespace (NULL: every template) from s->old, so that the sweep keeps it. */
static void mark_used(struct template_sweep *s, const char *name)
{
	for (size_t i = json_array_size(s->old); i-- > 0;) {
		const json_t *metadata = json_array_get(s->old, i);
		if (is_in(s, metadata) && (!name || !strcmp(text(metadata, "name"), name)))
			json_array_remove(s->old, i);
	}
}

static void mark_used_by_pod(struct template_sweep *s, const json_t *pod)
{
	const json_t *claims = json_object_get(json_object_get(pod, "spec"), "resourceClaims"), *one;
	size_t i;
	json_array_foreach((json_t *)claims, i, one)
		mark_used(s, text(one, "resourceClaimTemplateName"));
}

static void pods_path(const struct template_sweep *s, char path[NAME_MAX_BYTES])
{
	snprintf(path, NAME_MAX_BYTES, "/api/v1/namespaces/%s/pods?" PAGE, s->in_namespace);
}

static void pods_listed(void *data, const struct kube_answer *answer)
{
	struct template_sweep *s = data;
	const json_t *pod;
	char path[NAME_MAX_BYTES];
	size_t i;
	s->call = NULL;
	if (answer->err.code || !answer->object) {
		note(s, &answer->err);
		mark_used(s, NULL);
		next_namespace(s);
		return;
	}
	json_array_foreach(json_object_get(answer->object, "items"), i, pod)
		mark_used_by_pod(s, pod);
	pods_path(s, path);
	if (!request_next_page(s, path, answer->object, pods_listed))
		delete_next(s);
}

static void next_namespace(struct template_sweep *s)
{
	const json_t *first = json_array_get(s->old, 0);
	char path[NAME_MAX_BYTES];
	free(s->in_namespace);
	s->in_namespace = first ? strdup(text(first, "namespace")) : NULL;
	if (!s->in_namespace) {
		end(s);
		return;
	}
	pods_path(s, path);
	send_request(s, "GET", path, NULL, pods_listed);
}

static bool is_old(const json_t *metadata, int64_t now_s)
{
	const json_t *annotations = json_object_get(metadata, "annotations");
	struct error err;
	int64_t requested_s;
	if (timestamp_parse_rfc3339(text(annotations, TEMPLATE_REQUESTED), &requested_s, &err) < 0 &&
	    timestamp_parse_rfc3339(text(metadata, "creationTimestamp"), &requested_s, &err) < 0)
		return false;
	return now_s - requested_s > TEMPLATE_UNUSED_S;
}

static void templates_listed(void *data, const struct kube_answer *answer)
{
	struct template_sweep *s = data;
	const json_t *template;
	size_t i;
	s->call = NULL;
	if (answer->err.code || !answer->object) {
		note(s, &answer->err);
		end(s);
		return;
	}
	json_array_foreach(json_object_get(answer->object, "items"), i, template)
	{
		json_t *metadata = json_object_get(template, "metadata");
		if (is_old(metadata, (int64_t)time(NULL)))
			json_array_append(s->old, metadata);
	}
	if (!request_next_page(s, TEMPLATES, answer->object, templates_listed))
		next_namespace(s);
}

static void start_sweep(void *data)
{
	struct template_sweep *s = data;
	s->removed = 0;
	s->err.code = 0;
	json_array_clear(s->old);
	if (s->may_act(s->data))
		send_request(s, "GET", TEMPLATES, NULL, templates_listed);
	else
		alarm_set(kube_client_reactor(s->client), &s->again, FIRST_NS);
}

struct template_sweep *template_sweep_start(struct kube_client *client, bool (*may_act)(void *data),
					    void *data)
{
	struct template_sweep *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct template_sweep){
		.client = client, .may_act = may_act, .data = data, .old = json_array()
	};
	s->again = (struct alarm){ .handler = start_sweep, .data = s };
	if (!s->old)
		return template_sweep_stop(s);
	alarm_set(kube_client_reactor(client), &s->again, FIRST_NS);
	return s;
}

struct template_sweep *template_sweep_stop(struct template_sweep *s)
{
	if (!s)
		return NULL;
	alarm_clear(kube_client_reactor(s->client), &s->again);
	kube_call_drop(s->call);
	json_decref(s->old);
	free(s->in_namespace);
	free(s);
	return NULL;
}
