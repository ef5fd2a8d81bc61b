/* Turns a pod with GPU limits into a pod that names ResourceClaimTemplates (resource.k8s.io/v1). */
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scheduler/request/pod_request.h"
#include "scheduler/webhook/webhook.h"
#include "scheduler/webhook/webhook_inside.h"

#define TEMPLATE_BYTES 16 /* bytes of the digest in a template's name */
#define TEMPLATE_MAX 48

/* The claim and the template made from one container's part of the pod's request. */
struct made {
	char template[TEMPLATE_MAX]; /* "" if not converted yet */
	const char *claim;           /* the claim's name within the pod */
};

/* The name has a digest of the spec, so equal specs share a template. No pod owns a template: template_sweep.h deletes it. */
static int name_template(struct webhook_work *w, const json_t *spec, char ret[TEMPLATE_MAX])
{
	unsigned char digest[32];
	cleanup_free char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
	if (!text || gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), digest) < 0)
		return error_set_errno(w->err, ENOMEM, "claim");
	char *at = stpcpy(ret, WEBHOOK_TEMPLATES);
	for (size_t i = 0; i < TEMPLATE_BYTES; i++)
		at += sprintf(at, "%02x", digest[i]);
	return 0;
}

static int add_template(struct webhook_work *w, const char *name, json_t *spec)
{
	json_t *list = w->claims->templates, *one;
	size_t i;
	json_array_foreach(list, i, one)
	{
		const json_t *metadata = json_object_get(one, "metadata");
		if (!strcmp(json_string_value(json_object_get(metadata, "name")), name))
			return 0;
	}
	one = json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:{s:O}}", "apiVersion",
			"resource.k8s.io/v1", "kind", "ResourceClaimTemplate", "metadata", "name",
			name, "namespace", w->pod_namespace, "labels", WEBHOOK_LABEL_MANAGED,
			WEBHOOK_MANAGER, "spec", "spec", spec);
	if (json_array_append_new(list, one) < 0)
		return error_set_errno(w->err, ENOMEM, "claim");
	return 0;
}

/* Rejects a GPU resource that has a request but no limit: a claim is made from limits, so the request would be lost. */
static int check_limits(struct webhook_work *w, const struct webhook_container *c)
{
	const json_t *resources = json_object_get(c->object, "resources");
	const json_t *limits = json_object_get(resources, "limits");
	for (enum webhook_resource i = 0; i < RESOURCE_COUNT; i++) {
		const char *name = webhook_resource_name(w->terms, i);
		if (json_object_get(json_object_get(resources, "requests"), name) &&
		    !json_object_get(limits, name))
			return error_set(w->err, EINVAL,
					 "%.100s: is in requests only: add it to limits", name);
	}
	return 0;
}

static void remove_requests(struct webhook_work *w, struct webhook_container *c)
{
	static const char *const kinds[] = { "limits", "requests" };
	const json_t *resources = json_object_get(c->object, "resources");
	for (size_t i = 0; i < 2; i++) {
		json_t *kind = json_object_get(resources, kinds[i]);
		char path[80];
		snprintf(path, sizeof(path), "%s/resources/%s", c->path, kinds[i]);
		for (enum webhook_resource k = 0; k < RESOURCE_COUNT; k++) {
			const char *name = webhook_resource_name(w->terms, k);
			if (json_object_get(kind, name))
				json_patch_remove(&w->patch, kind, path, name);
		}
	}
}

static void name_claim(struct webhook_work *w, struct webhook_container *c, const char *claim)
{
	json_t *resources = json_object_get(c->object, "resources");
	char path[80];
	snprintf(path, sizeof(path), "%s/resources", c->path);
	json_t *claims = json_patch_member(&w->patch, resources, path, "claims", json_array());
	snprintf(path, sizeof(path), "%s/resources/claims", c->path);
	if (claims)
		json_patch_append(&w->patch, claims, path, json_pack("{s:s}", "name", claim));
}

static int add_claim(struct webhook_work *w, const struct webhook_container *c, const char *template)
{
	json_t *spec = json_object_get(w->pod, "spec"), *one;
	json_t *claims = json_patch_member(&w->patch, spec, "/spec", "resourceClaims", json_array());
	size_t i;
	json_array_foreach(claims, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));
		if (name && !strcmp(name, c->name))
			return error_set(
				w->err, EINVAL,
				"spec.resourceClaims already has '%.63s', the name of the claim "
				"that allot-scheduler makes from the container's limits: rename your "
				"claim, or remove the container's GPU limits",
				c->name);
	}
	if (claims)
		json_patch_append(&w->patch, claims, "/spec/resourceClaims",
				  json_pack("{s:s, s:s}", "name", c->name,
					    "resourceClaimTemplateName", template));
	return 0;
}

/*
 * Returns another container's claim that init container `part` can share: the requests are equal, and the containers never run
 * at the same time. With a claim of its own, the init container would keep a share as long as the pod lives. NULL if none.
 */
static const char *find_claim(const struct request *request, const struct made *made, size_t part)
{
	for (size_t i = request->count; request->part[part].is_init && i-- > 0;)
		if (i != part && !request->part[i].is_sidecar && made[i].claim &&
		    !strcmp(made[i].template, made[part].template))
			return made[i].claim;
	return NULL;
}

static int add_own(struct webhook_work *w, const struct webhook_container *container,
		   const char *template, json_t *spec)
{
	int r = add_template(w, template, spec);
	if (r >= 0)
		r = add_claim(w, container, template);
	if (r >= 0 && container->is_init)
		webhook_warn(w,
			     "init container %.63s: its GPU share stays assigned until the pod ends: "
			     "request the same amounts as another container to use one share",
			     container->name);
	return r;
}

static int convert(struct webhook_work *w, const struct kube_pod *pod,
		   const struct request *request, struct made *made, size_t i)
{
	struct webhook_container *container = &w->container[request->part[i].container];
	cleanup_json json_t *spec = NULL;
	int r = check_limits(w, container);
	if (r >= 0)
		r = webhook_make_spec(w, pod, request, i, &spec);
	if (r >= 0)
		r = name_template(w, spec, made[i].template);
	const char *claim = r >= 0 ? find_claim(request, made, i) : NULL;
	if (r >= 0 && !claim) {
		claim = container->name;
		r = add_own(w, container, made[i].template, spec);
	}
	if (r < 0)
		return r == -ENODATA ? r : error_add(w->err, r, "container %.63s", container->name);
	made[i].claim = claim;
	remove_requests(w, container);
	name_claim(w, container, claim);
	return 0;
}

/* Init containers come last, because they may share the claims of other containers. */
static int convert_all(struct webhook_work *w, const struct kube_pod *pod,
		       const struct request *request)
{
	struct made *made = calloc(request->count + 1, sizeof(*made));
	int r = made ? webhook_check_sayable(w, request) : -ENOMEM;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; r >= 0 && i < request->count; i++)
			if (request->part[i].is_init == (pass == 1))
				r = convert(w, pod, request, made, i);
	free(made);
	return r;
}

/* Reads a copy of the pod with placeholders: a pod that is not stored yet has no uid, no version, and perhaps no name. */
static int read_pod(struct webhook_work *w, struct kube_pod **ret)
{
	cleanup_json json_t *copy = json_deep_copy(w->pod);
	json_t *metadata = json_object_get(copy, "metadata");
	if (!json_is_object(metadata)) {
		metadata = json_object();
		json_object_set_new(copy, "metadata", metadata);
	}
	for (size_t i = 0; i < 3; i++)
		json_object_set_new(metadata,
				    ((const char *[]){ "uid", "name", "resourceVersion" })[i],
				    json_string("new"));
	json_object_set_new(metadata, "namespace", json_string(w->pod_namespace));
	return pod_read(copy, ret, w->err);
}

int webhook_make_claims(struct webhook_work *w)
{
	struct request_terms terms = request_terms_default;
	struct request request;
	struct kube_pod *pod;
	terms.count = w->terms->gpu;
	terms.memory = w->terms->memory;
	terms.memory_pct = w->terms->memory_pct;
	terms.cores = w->terms->cores;
	terms.vcuda = (struct vcuda_names){ w->terms->vcuda_cores, w->terms->vcuda_memory };
	int r = read_pod(w, &pod);
	if (r < 0)
		return r;
	r = request_read(pod, &terms, &request, w->err);
	if (r >= 0) {
		r = convert_all(w, pod, &request);
		request_free(&request);
	}
	pod_free(pod);
	return r;
}
