#include "scheduler/webhook/webhook.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/settings/settings.h"
#include "base/text.h"
#include "kube/util/base64.h"
#include "scheduler/webhook/webhook_inside.h"

#define API_VERSION "admission.k8s.io/v1"
#define DEFAULT_SCHEDULER "default-scheduler"
#define EPHEMERAL "ephemeralContainers"
#define WARNINGS_MAX 16 /* the API server cuts off warnings beyond 4 KiB in all */

void webhook_warn(struct webhook_work *w, const char *format, ...)
{
	char text[256];
	va_list ap;
	if (json_array_size(w->warnings) >= WARNINGS_MAX)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	text_clean(text);
	json_array_append_new(w->warnings, json_string(text));
}

const char *webhook_meta(const struct webhook_work *w, const char *kind, const char *name)
{
	const json_t *metadata = json_object_get(w->pod, "metadata");
	return json_string_value(json_object_get(json_object_get(metadata, kind), name));
}

static bool is_exempt(const struct webhook_work *w)
{
	static const char *const labels[] = { WEBHOOK_LABEL, WEBHOOK_LABEL_HAMI };
	if (settings_list_matches(w->terms->namespaces, w->pod_namespace))
		return true;
	for (size_t i = 0; w->terms->has_opt_out && i < 2; i++) {
		const char *value = webhook_meta(w, "labels", labels[i]);
		if (value && !strcmp(value, WEBHOOK_IGNORE))
			return true;
	}
	return false;
}

/* A sidecar is an init container that runs beside the main containers. */
static bool is_sidecar(const json_t *container)
{
	const char *policy = json_string_value(json_object_get(container, "restartPolicy"));
	return policy && !strcmp(policy, "Always");
}

/* Whether the pod had an ephemeral container of this name before. */
static bool is_old(const struct webhook_work *w, const char *name)
{
	const json_t *list = json_object_get(json_object_get(w->old_pod, "spec"), EPHEMERAL), *one;
	size_t i;
	json_array_foreach(list, i, one)
	{
		const char *own = json_string_value(json_object_get(one, "name"));
		if (own && !strcmp(own, name))
			return true;
	}
	return false;
}

static int add_containers(struct webhook_work *w, const char *kind)
{
	bool is_init = !strcmp(kind, "initContainers"), is_ephemeral = !strcmp(kind, EPHEMERAL);
	json_t *list = json_object_get(json_object_get(w->pod, "spec"), kind), *object;
	size_t i;
	if (list && !json_is_null(list) && !json_is_array(list))
		return error_set(w->err, EINVAL, "spec.%s: must be a list", kind);
	json_array_foreach(list, i, object)
	{
		struct webhook_container *c = &w->container[w->containers];
		const char *name = json_string_or(object, "name", "");
		if (!json_is_object(object))
			return error_set(w->err, EINVAL, "spec.%s[%zu]: must be an object", kind, i);
		if (is_ephemeral && *name && is_old(w, name))
			continue;
		*c = (struct webhook_container){ .object = object,
						 .name = name,
						 .is_init = is_init && !is_sidecar(object),
						 .is_ephemeral = is_ephemeral };
		snprintf(c->path, sizeof(c->path), "/spec/%s/%zu", kind, i);
		w->containers++;
	}
	return 0;
}

static int find_containers(struct webhook_work *w)
{
	const json_t *spec = json_object_get(w->pod, "spec");
	size_t init = json_array_size(json_object_get(spec, "initContainers"));
	size_t main = json_array_size(json_object_get(spec, "containers"));
	size_t ephemeral = json_array_size(json_object_get(spec, EPHEMERAL));
	w->container = calloc(init + main + ephemeral + 1, sizeof(*w->container));
	if (!w->container)
		return -ENOMEM;
	int r = add_containers(w, "initContainers");
	if (r >= 0)
		r = add_containers(w, "containers");
	if (r >= 0 && w->is_ephemeral)
		r = add_containers(w, EPHEMERAL);
	if (r >= 0 && !main)
		r = error_set(w->err, EACCES, "pod has no containers");
	return r;
}

static bool requests_gpu(const struct webhook_work *w)
{
	for (size_t i = 0; i < w->containers; i++)
		if (w->container[i].requests_gpu)
			return true;
	return false;
}

/* Returns the scheduler that the pod names, if that is neither the default one nor ours; else NULL. */
static const char *other_scheduler(const struct webhook_work *w, const json_t *spec)
{
	const char *named = json_string_value(json_object_get(spec, "schedulerName"));

	if (!named || !*named || strcmp(named, DEFAULT_SCHEDULER) == 0 ||
	    strcmp(named, w->terms->scheduler) == 0)
		return NULL;
	return named;
}

static void put_spec(struct webhook_work *w, json_t *spec, const char *name, const char *value)
{
	const char *now = json_string_value(json_object_get(spec, name));
	if (!now || strcmp(now, value) != 0)
		json_patch_put(&w->patch, spec, "/spec", name, json_string(value));
}

/* Warns of a RuntimeClass with a kernel of its own. No denial, because another cluster may use that name for something else. */
static void warn_of_sandbox(struct webhook_work *w, const char *class)
{
	const char *sandbox = NULL;

	if (!strcmp(class, "gvisor") || !strcmp(class, "runsc"))
		sandbox = "gVisor";
	else if (!strncmp(class, "kata", strlen("kata")))
		sandbox = "Kata Containers";
	if (sandbox)
		webhook_warn(
			w,
			"runtimeClassName %.63s: allot cannot limit GPUs in %s, so the pod's programs get none: use a RuntimeClass of runc",
			class, sandbox);
}

static int make_ours(struct webhook_work *w, json_t *spec)
{
	const char *node = json_string_value(json_object_get(spec, "nodeName"));
	const char *class = json_string_value(json_object_get(spec, "runtimeClassName"));
	if (node && *node)
		return error_set(
			w->err, EACCES,
			"pod has node assigned: %.120s: pods with GPUs must be placed by %.63s; use a nodeSelector to choose among nodes",
			node, w->terms->device_class ? DEFAULT_SCHEDULER : w->terms->scheduler);
	int r = webhook_complete_requests(w);
	if (r >= 0 && w->terms->device_class)
		r = webhook_make_claims(w);
	if (r >= 0)
		r = webhook_apply_workload(w);
	if (r < 0)
		return r;
	if (strcmp(w->terms->runtime_class, "none") != 0 && !(class && *class))
		put_spec(w, spec, "runtimeClassName", w->terms->runtime_class);
	warn_of_sandbox(w, class && *class ? class : w->terms->runtime_class);
	const char *placer = w->terms->device_class ? DEFAULT_SCHEDULER : w->terms->scheduler;
	const char *other = other_scheduler(w, spec);
	if (other)
		webhook_warn(
			w,
			"schedulerName %.63s: replaced by %.63s, which places pods with GPUs in this cluster",
			other, placer);
	put_spec(w, spec, "schedulerName", placer);
	return 0;
}

static int process_pod(struct webhook_work *w)
{
	json_t *spec = json_object_get(w->pod, "spec");
	/* A pod for another scheduler is left to it, unless the setting force_scheduler is on. */
	bool is_ours = !other_scheduler(w, spec) || w->terms->is_forced;
	/* Strip before the exemption: even ignored pods must not carry annotations that assign GPUs. */
	webhook_strip(w);
	if (is_exempt(w))
		return 0;
	int r = find_containers(w);
	if (r < 0)
		return r;
	r = webhook_read_requests(w);
	/* A malformed request is ignored in a pod for another scheduler, which may have its own rules. */
	r = is_ours ? r : 0;
	is_ours = is_ours && requests_gpu(w);
	if (r >= 0)
		r = webhook_guard(w, is_ours);
	return r >= 0 && is_ours ? make_ours(w, spec) : r;
}

/* Whether webhook_make_claims() has replaced the limits of this pod by ResourceClaims. */
static bool has_made_claims(const struct webhook_work *w)
{
	const json_t *list = json_object_get(json_object_get(w->pod, "spec"), "resourceClaims");
	const json_t *one;
	size_t i;
	json_array_foreach(list, i, one)
	{
		const char *name = json_string_value(
			json_object_get(one, "resourceClaimTemplateName"));
		if (name && !strncmp(name, WEBHOOK_TEMPLATES, strlen(WEBHOOK_TEMPLATES)))
			return true;
	}
	return false;
}

/* Checks the ephemeral containers that a running pod gets (kubectl debug). */
static int process_ephemeral(struct webhook_work *w)
{
	bool is_ours = !other_scheduler(w, json_object_get(w->pod, "spec")) || w->terms->is_forced;
	if (is_exempt(w))
		return 0;
	int r = find_containers(w);
	/* Ignore errors in the pod's requests: they were checked when the pod was created. */
	if (r >= 0 && webhook_read_requests(w) < 0)
		*w->err = (struct error){ 0 };
	return r >= 0 ? webhook_guard(w, is_ours && (requests_gpu(w) || has_made_claims(w))) : r;
}

/* Makes a denial. Its HTTP status: 403 if the pod is forbidden, 422 if it is malformed, 503 if a later retry may succeed. */
static json_t *denial(const struct error *why)
{
	const char *reason = "Invalid";
	int code = 422;
	struct error clean = *why;
	switch (why->code) {
	case EACCES:
		reason = "Forbidden";
		code = 403;
		break;
	case EBUSY:
	case ETIMEDOUT:
	case ECONNREFUSED:
	case EPROTO:
		reason = "ServiceUnavailable";
		code = 503;
		break;
	}
	text_clean(clean.text);
	return json_pack("{s:s,s:i,s:s,s:s}", "status", "Failure", "code", code, "reason", reason,
			 "message", clean.text);
}

static json_t *make_response(const struct webhook_work *w, const char *uid, int r)
{
	cleanup_json json_t *response = json_pack("{s:s,s:b}", "uid", uid, "allowed", r >= 0);
	if (!response)
		return NULL;
	if (r < 0)
		json_object_set_new(response, "status", denial(w->err));
	if (json_array_size(w->warnings))
		json_object_set(response, "warnings", w->warnings);
	if (r >= 0 && w->patch.operations) {
		cleanup_free char *text = json_dumps(w->patch.operations, JSON_COMPACT);
		cleanup_free char *base64 = text ? base64_encode(text) : NULL;
		if (!base64 ||
		    json_object_set_new(response, "patchType", json_string("JSONPatch")) < 0 ||
		    json_object_set_new(response, "patch", json_string(base64)) < 0)
			return NULL;
	}
	return json_incref(response);
}

static bool is_review_of(const json_t *request, const char *operation, const char *subresource)
{
	const char *own = json_string_value(json_object_get(request, "operation"));
	const char *kind = json_string_value(
		json_object_get(json_object_get(request, "kind"), "kind"));
	const char *part = json_string_or(request, "subResource", "");
	return own && !strcmp(own, operation) && kind && !strcmp(kind, "Pod") &&
	       !strcmp(part, subresource);
}

static json_t *respond(const struct webhook_terms *terms, const json_t *request, const char *uid,
		       struct webhook_claims *claims)
{
	struct error why = { 0 };
	struct webhook_work w = { .terms = terms,
				  .claims = claims,
				  .pod = json_deep_copy(json_object_get(request, "object")),
				  .old_pod = json_object_get(request, "oldObject"),
				  .pod_namespace = json_string_or(request, "namespace", ""),
				  .warnings = json_array(),
				  .err = &why };
	json_t *response = NULL;
	int r = 0;
	w.is_ephemeral = is_review_of(request, "UPDATE", "ephemeralcontainers");
	if (w.is_ephemeral || is_review_of(request, "CREATE", ""))
		r = !json_is_object(w.pod)
			    ? error_set(&why, EINVAL, "the AdmissionReview has no pod")
			    : (w.is_ephemeral ? process_ephemeral : process_pod)(&w);
	if (r >= 0 && *w.patch.misfit)
		r = error_set(&why, EINVAL, "%s", w.patch.misfit);
	if (r != -ENOMEM && !w.patch.has_failed && w.warnings)
		response = make_response(&w, uid, r);
	json_patch_free(&w.patch);
	json_decref(w.warnings);
	json_decref(w.pod);
	free(w.container);
	return response;
}

/* Returns an AdmissionReview with the response. Takes ownership of `response`, which may be NULL. */
static json_t *answer_with(json_t *response)
{
	return response ? json_pack("{s:s,s:s,s:o}", "apiVersion", API_VERSION, "kind",
				    "AdmissionReview", "response", response)
			: NULL;
}

static const char *uid_of(const json_t *review)
{
	return json_string_value(json_object_get(json_object_get(review, "request"), "uid"));
}

json_t *webhook_review(const struct webhook_terms *terms, const json_t *review,
		       struct webhook_claims *claims, struct error *err)
{
	const char *uid = uid_of(review);
	const char *version = json_string_or(review, "apiVersion", "");
	if (strcmp(version, API_VERSION) != 0) {
		error_set(err, EINVAL, "AdmissionReview: apiVersion '%.60s': must be " API_VERSION,
			  version);
		return NULL;
	}
	if (!uid || !*uid) {
		error_set(err, EINVAL, "request.uid: missing");
		return NULL;
	}
	json_t *answer = answer_with(respond(terms, json_object_get(review, "request"), uid, claims));
	if (!answer)
		error_set_errno(err, ENOMEM, "AdmissionReview");
	return answer;
}

json_t *webhook_deny(const json_t *review, const struct error *why)
{
	return answer_with(json_pack("{s:s,s:b,s:o}", "uid", uid_of(review), "allowed", false,
				     "status", denial(why)));
}
