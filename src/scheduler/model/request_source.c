/* Computes a digest of everything that request_read() reads in a pod, and possibly more. */
#include <string.h>

#include "base/cleanup.h"
#include "kube/hami/annotations.h"
#include "scheduler/model/model_inside.h"

/* Prefixes of annotations that users write. */
static const char *const domains[] = { "nvidia.com/", "hami.io/", "tencent.com/",
				       KUBE_LIVE_DOMAIN "/" };
/* Annotations whose prefixes are in `domains`, but that only schedulers write. They are not part of the request. */
static const char *const written[] = { KUBE_POD_NODE,
				       KUBE_POD_TIME,
				       KUBE_POD_BIND_TIME,
				       KUBE_POD_BIND_PHASE,
				       KUBE_POD_TO_ALLOCATE,
				       KUBE_POD_ALLOCATED,
				       KUBE_LIVE_DOMAIN "/" KUBE_ROOM_SINCE };

static bool is_wish(const char *name)
{
	/* An annotation for one container, such as CONTAINER.allot.dev/memory, begins with the container's name. */
	bool is = strstr(name, "." KUBE_LIVE_DOMAIN "/") != NULL;
	for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++)
		is |= !strncmp(name, domains[i], strlen(domains[i]));
	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++)
		is &= strcmp(name, written[i]) != 0;
	return is;
}

/* Sums the digests of users' annotations, so that their order does not matter. */
static uint64_t annotations_digest(const struct kube_pod *pod)
{
	const json_t *meta = json_object_get(pod->object, "metadata");
	json_t *annotations = json_object_get(meta, "annotations"), *value;
	const char *name;
	uint64_t sum = 0;
	json_object_foreach(annotations, name, value)
	{
		if (is_wish(name))
			sum += digest_add(digest_add(DIGEST_FIRST, name), json_string_value(value));
	}
	return sum;
}

uint64_t request_source(const struct kube_pod *pod)
{
	uint64_t digest = DIGEST_FIRST;
	for (size_t i = 0; i < pod->containers; i++) {
		const json_t *container = pod_container(pod, i);
		cleanup_free char *resources = json_dumps(json_object_get(container, "resources"),
							  JSON_COMPACT | JSON_SORT_KEYS);
		digest = digest_add(digest, i < pod->init_containers ? "init" : "app");
		digest = digest_add(digest,
				    json_string_value(json_object_get(container, "restartPolicy")));
		digest = digest_add(digest, resources);
		/* Names of some annotations contain the container's name, so the digest includes that name. */
		digest = digest_add(digest, pod->container[i]);
	}
	return digest + annotations_digest(pod);
}
