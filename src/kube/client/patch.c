#include "kube/client/patch.h"

#include <jansson.h>

#include "base/json.h"

static int put(json_t *metadata, const char *what, const struct patch_pair *pair, size_t count)
{
	json_t *object = count ? json_object() : NULL;
	for (size_t i = 0; i < count; i++) {
		json_t *value = pair[i].value ? json_string(pair[i].value) : json_null();
		if (json_object_set_new(object, pair[i].name, value) < 0) {
			json_decref(object);
			return -1;
		}
	}
	return count ? json_object_set_new(metadata, what, object) : 0;
}

char *patch_metadata(const struct patch_pair *annotation, size_t annotations,
		     const struct patch_pair *label, size_t labels, const char *version)
{
	cleanup_json json_t *patch = json_object();
	json_t *metadata = json_object();
	if (json_object_set_new(patch, "metadata", metadata) < 0 ||
	    put(metadata, "annotations", annotation, annotations) < 0 ||
	    put(metadata, "labels", label, labels) < 0 ||
	    (version && json_object_set_new(metadata, "resourceVersion", json_string(version)) < 0))
		return NULL;
	return json_dumps(patch, JSON_COMPACT);
}
