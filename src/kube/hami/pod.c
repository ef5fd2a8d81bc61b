#include "kube/hami/pod.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "kube/hami/annotations.h"
#include "kube/util/sanitize.h"

static enum pod_phase read_phase(const char *text)
{
	if (!strcmp(text, "Pending"))
		return POD_PENDING;
	if (!strcmp(text, "Running"))
		return POD_RUNNING;
	if (!strcmp(text, "Succeeded") || !strcmp(text, "Failed"))
		return POD_ENDED;
	return POD_UNKNOWN;
}

static enum bind_phase read_bind_phase(const char *text)
{
	static const struct {
		const char *text;
		enum bind_phase phase;
	} rows[] = {
		{ "allocating", BIND_ALLOCATING },
		{ "success", BIND_SUCCESS },
		{ "failed", BIND_FAILED },
	};
	for (size_t i = 0; text && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].text, text))
			return rows[i].phase;
	return text ? BIND_OTHER : BIND_NONE;
}

static int add_containers(struct kube_pod *pod, const json_t *list, const char *what,
			  struct error *err)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_or(json_array_get(list, i), "name", NULL);
		if (!name)
			return error_set(err, EINVAL, "spec.%s[%zu].name: missing", what, i);
		pod->container[pod->containers++] = name;
	}
	return 0;
}

static int read_containers(struct kube_pod *pod, const json_t *spec, struct error *err)
{
	const json_t *init = json_object_get(spec, "initContainers");
	const json_t *others = json_object_get(spec, "containers");
	pod->init_containers = json_array_size(init);
	pod->container = calloc(pod->init_containers + json_array_size(others) + 1,
				sizeof(*pod->container));
	if (!pod->container)
		return error_set_errno(err, ENOMEM, "pod");
	int r = add_containers(pod, init, "initContainers", err);
	return r < 0 ? r : add_containers(pod, others, "containers", err);
}

static int read_pod(struct kube_pod *pod, struct error *err)
{
	const json_t *meta = json_object_get(pod->object, "metadata");
	const json_t *spec = json_object_get(pod->object, "spec");
	const json_t *status = json_object_get(pod->object, "status");
	pod->uid = json_string_or(meta, "uid", NULL);
	pod->name = json_string_or(meta, "name", NULL);
	pod->pod_namespace = json_string_or(meta, "namespace", NULL);
	pod->version = json_string_or(meta, "resourceVersion", NULL);
	if (!pod->uid || !pod->name || !pod->pod_namespace || !pod->version)
		return error_set(
			err, EINVAL,
			"pod %s: metadata: must have uid, namespace, name and resourceVersion",
			pod->name ? pod->name : "without a name");
	pod->is_terminating = json_object_get(meta, "deletionTimestamp") != NULL;
	pod->node = json_string_or(spec, "nodeName", "");
	pod->phase = read_phase(json_string_or(status, "phase", ""));
	pod->created = json_string_or(meta, "creationTimestamp", "");
	pod->is_started = json_object_get(status, "startTime") != NULL;
	const char *vgpu_node = pod_annotation(pod, KUBE_POD_NODE);
	pod->vgpu_node = vgpu_node ? vgpu_node : "";
	pod->to_allocate = pod_annotation(pod, KUBE_POD_TO_ALLOCATE);
	pod->allocated = pod_annotation(pod, KUBE_POD_ALLOCATED);
	pod->bind_time = pod_annotation(pod, KUBE_POD_BIND_TIME);
	pod->bind_phase = read_bind_phase(pod_annotation(pod, KUBE_POD_BIND_PHASE));
	int r = read_containers(pod, spec, err);
	return r < 0 ? error_add(err, r, "pod %s/%s", pod->pod_namespace, pod->name) : 0;
}

int pod_read(json_t *object, struct kube_pod **ret, struct error *err)
{
	struct kube_pod *pod = calloc(1, sizeof(*pod));
	if (!pod)
		return error_set_errno(err, ENOMEM, "pod");
	pod->object = json_incref(object);
	int r = read_pod(pod, err);
	if (r < 0) {
		pod_free(pod);
		return error_sanitize(err, r);
	}
	*ret = pod;
	return 0;
}

struct kube_pod *pod_free(struct kube_pod *pod)
{
	if (!pod)
		return NULL;
	json_decref(pod->object);
	free(pod->container);
	free(pod);
	return NULL;
}

#define KUBECTL_COPY "kubectl.kubernetes.io/last-applied-configuration"

static json_t *pick(const json_t *object, const char *const *keys)
{
	json_t *picked = json_object();
	for (; *keys; keys++)
		if (json_object_get(object, *keys))
			json_object_set(picked, *keys, json_object_get(object, *keys));
	return picked;
}

static json_t *pick_containers(const json_t *list)
{
	static const char *const keys[] = { "name", "resources", "restartPolicy", NULL };
	json_t *picked = json_array();
	for (size_t i = 0; i < json_array_size(list); i++)
		json_array_append_new(picked, pick(json_array_get(list, i), keys));
	return picked;
}

json_t *pod_copy_trimmed(const json_t *object)
{
	static const char *const of_meta[] = { "name",
					       "namespace",
					       "uid",
					       "resourceVersion",
					       "creationTimestamp",
					       "deletionTimestamp",
					       NULL };
	static const char *const of_spec[] = { "nodeName", NULL };
	static const char *const of_status[] = { "phase", "startTime", NULL };
	const json_t *meta = json_object_get(object, "metadata"),
		     *spec = json_object_get(object, "spec");
	json_t *annotations = json_copy(json_object_get(meta, "annotations"));
	json_object_del(annotations, KUBECTL_COPY);
	json_t *kept_meta = pick(meta, of_meta), *kept_spec = pick(spec, of_spec);
	json_t *init = pick_containers(json_object_get(spec, "initContainers"));
	json_t *containers = pick_containers(json_object_get(spec, "containers"));
	if (annotations)
		json_object_set_new(kept_meta, "annotations", annotations);
	json_object_set_new(kept_spec, "initContainers", init);
	json_object_set_new(kept_spec, "containers", containers);
	return json_pack("{s:o,s:o,s:o}", "metadata", kept_meta, "spec", kept_spec, "status",
			 pick(json_object_get(object, "status"), of_status));
}

const char *pod_annotation(const struct kube_pod *pod, const char *name)
{
	const json_t *meta = json_object_get(pod->object, "metadata");
	return json_string_or(json_object_get(meta, "annotations"), name, NULL);
}

size_t pod_find_container(const struct kube_pod *pod, const char *name)
{
	size_t i = 0;
	while (i < pod->containers && strcmp(pod->container[i], name) != 0)
		i++;
	return i;
}

bool pod_is_sidecar(const struct kube_pod *pod, size_t container)
{
	const char *policy = json_string_or(pod_container(pod, container), "restartPolicy", "");
	return container < pod->init_containers && !strcmp(policy, "Always");
}

const json_t *pod_container(const struct kube_pod *pod, size_t container)
{
	const json_t *spec = json_object_get(pod->object, "spec");
	return container < pod->init_containers
		       ? json_array_get(json_object_get(spec, "initContainers"), container)
		       : json_array_get(json_object_get(spec, "containers"),
					container - pod->init_containers);
}

const char *pod_limit(const struct kube_pod *pod, size_t container, const char *resource)
{
	const json_t *resources = json_object_get(pod_container(pod, container), "resources");
	return json_string_or(json_object_get(resources, "limits"), resource, NULL);
}

int pod_bind_time(const struct kube_pod *pod, int64_t *ret_s, struct error *err)
{
	if (!pod->bind_time)
		return error_set(err, ENODATA, KUBE_POD_BIND_TIME ": missing");
	int r = parse_int(pod->bind_time, 0, INT64_MAX / 2, ret_s, err);
	return r < 0 ? error_sanitize(err, error_add(err, r, KUBE_POD_BIND_TIME)) : 0;
}

const char *pod_node(const struct kube_pod *pod)
{
	return *pod->node ? pod->node : pod->vgpu_node;
}
