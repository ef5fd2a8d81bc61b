#include "cli/explain/claims_get.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/explain/api.h"
#include "cli/explain/explain_text.h"
#include "kube/dra/dra_names.h"

#define PATH_SIZE 1024
#define SLICES DRA_API "/resourceslices?fieldSelector=spec.driver%3D" DRA_DRIVER

static json_t *get(const struct kube_access *access, const char *path, bool *ret_is_missing)
{
	json_t *object = NULL;
	int status = 0;
	if (api_get(access, path, NULL, &status, &object, NULL) < 0) {
		json_decref(object);
		object = NULL;
	}
	if (ret_is_missing)
		*ret_is_missing = status == 404;
	return object;
}

json_t *explain_events_fetch(const struct kube_access *access, const char *in, const char *pod)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof(path),
		 "/api/v1/namespaces/%s/events?fieldSelector=involvedObject.kind%%3DPod,"
		 "involvedObject.name%%3D%s",
		 in, pod);
	return get(access, path, NULL);
}

/* Stores the object at `path` in `to` under `name`. Stores null if it does not exist, nothing if it can't be read. */
static void add(const struct kube_access *access, const char *path, json_t *to, const char *name)
{
	bool is_missing;
	json_t *object = get(access, path, &is_missing);
	if (object || is_missing)
		json_object_set_new(to, name, object ? object : json_null());
}

static void get_class(const struct kube_access *access, const json_t *request, json_t *classes)
{
	const char *class = explain_word(request, "deviceClassName");
	char path[PATH_SIZE];
	if (!*class || json_object_get(classes, class))
		return;
	snprintf(path, sizeof(path), DRA_API "/deviceclasses/%s", class);
	add(access, path, classes, class);
}

static void get_classes(const struct kube_access *access, const json_t *claim, json_t *classes)
{
	const json_t *devices = json_object_get(json_object_get(claim, "spec"), "devices");
	const json_t *requests = json_object_get(devices, "requests");
	for (size_t i = 0; i < json_array_size(requests); i++) {
		const json_t *one = json_array_get(requests, i);
		const json_t *list = json_object_get(one, "firstAvailable");
		get_class(access, json_object_get(one, "exactly"), classes);
		for (size_t k = 0; k < json_array_size(list); k++)
			get_class(access, json_array_get(list, k), classes);
	}
}

static void get_claim(const struct kube_access *access, const char *in, const json_t *pod,
		      const json_t *entry, struct explain_claims *known)
{
	const char *name = explain_claim_name(pod, entry), *own = explain_word(entry, "name");
	const char *template = explain_word(entry, "resourceClaimTemplateName");
	char path[PATH_SIZE];
	bool is_missing = false;
	if (*name) {
		snprintf(path, sizeof(path), DRA_API "/namespaces/%s/resourceclaims/%s", in, name);
		add(access, path, known->claims, own);
		get_classes(access, json_object_get(known->claims, own), known->classes);
		return;
	}
	snprintf(path, sizeof(path), DRA_API "/namespaces/%s/resourceclaimtemplates/%s", in,
		 template);
	cleanup_json json_t *object = get(access, path, &is_missing);
	if (object || is_missing)
		json_object_set_new(known->templates, template, json_boolean(!is_missing));
}

void explain_claims_fetch(const struct kube_access *access, const char *in, const json_t *pod,
			  struct explain_claims *ret)
{
	const json_t *spec = json_object_get(pod, "spec");
	const json_t *entries = json_object_get(spec, "resourceClaims");
	*ret = (struct explain_claims){ .claims = json_object(),
					.templates = json_object(),
					.classes = json_object() };
	for (size_t i = 0; i < json_array_size(entries); i++)
		get_claim(access, in, pod, json_array_get(entries, i), ret);
	ret->events = explain_events_fetch(access, in,
					   explain_word(json_object_get(pod, "metadata"), "name"));
	if (*explain_word(spec, "nodeName"))
		return;
	ret->slices = get(access, SLICES, NULL);
	ret->all = get(access, DRA_API "/resourceclaims", NULL);
}

void explain_claims_free(struct explain_claims *known)
{
	json_decref(known->claims);
	json_decref(known->templates);
	json_decref(known->classes);
	json_decref(known->slices);
	json_decref(known->all);
	json_decref(known->events);
	*known = (struct explain_claims){ 0 };
}
