#include "scheduler/gang/gang_read.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "kube/hami/annotations.h"

#define OWN_NAME KUBE_LIVE_DOMAIN "/" KUBE_GANG
#define OWN_SIZE KUBE_LIVE_DOMAIN "/" KUBE_GANG_SIZE

/* The first row whose `name` is an annotation or label of the pod names the pod's gang. */
static const struct row {
	const char *name, *size; /* size: NULL if only OWN_SIZE gives it */
	bool needs_own_size;     /* makes a gang only together with OWN_SIZE */
} rows[] = {
	{ .name = OWN_NAME },
	{ .name = "scheduling.x-k8s.io/pod-group" },
	{ "pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available" },
	{ "scheduling.volcano.sh/group-name", "scheduling.volcano.sh/group-min-member" },
	{ "scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-min-member" },
	{ "gang.scheduling.koordinator.sh/name", "gang.scheduling.koordinator.sh/min-available" },
	{ "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count" },
	{ .name = "batch.kubernetes.io/job-name", .needs_own_size = true },
	{ .name = "job-name", .needs_own_size = true }, /* before Kubernetes 1.27 */
};

struct pod_metadata {
	const json_t *annotations, *labels;
};

static const char *find(const struct pod_metadata *s, const char *name)
{
	const char *text = json_string_value(json_object_get(s->annotations, name));
	return text ? text : json_string_value(json_object_get(s->labels, name));
}

/* Whether the text is short and has only characters of a label's value, so that it can be printed. */
static bool is_name(const char *text)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789-._");
	return length && !text[length] && length <= GANG_NAME_MAX;
}

static int read_size(const struct pod_metadata *s, const char *name, unsigned *ret,
		     struct error *err)
{
	const char *text = name ? find(s, name) : NULL;
	int64_t size;
	int r = text ? parse_int(text, 1, GANG_SIZE_MAX, &size, err) : 0;
	if (r < 0) {
		if (err)
			err->code = EINVAL;
		return error_add(err, -EINVAL, "%s", name);
	}
	if (text)
		*ret = (unsigned)size;
	return 0;
}

int gang_read(const json_t *pod, struct gang_annotations *ret, struct error *err)
{
	const json_t *meta = json_object_get(pod, "metadata");
	const struct pod_metadata s = { json_object_get(meta, "annotations"),
					json_object_get(meta, "labels") };
	*ret = (struct gang_annotations){ 0 };
	if (!s.annotations && !s.labels)
		return 0;
	bool has_own = find(&s, OWN_SIZE);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		const char *name = row->needs_own_size && !has_own ? NULL : find(&s, row->name);
		if (!name)
			continue;
		*ret = (struct gang_annotations){ .name = is_name(name) ? name : "",
						  .by = row->name };
		if (!*ret->name)
			return error_set(
				err, EINVAL,
				"%s: must have only letters, digits, '-', '.' and '_', and at most %d characters",
				row->name, GANG_NAME_MAX);
		return read_size(&s, has_own ? OWN_SIZE : row->size, &ret->size, err);
	}
	if (!has_own)
		return 0;
	*ret = (struct gang_annotations){ .name = "", .by = OWN_SIZE };
	return error_set(err, EINVAL,
			 OWN_SIZE " is set without " OWN_NAME ": add " OWN_NAME
				  " with the gang's name");
}

bool gang_is_gated(const json_t *pod)
{
	const json_t *spec = json_object_get(pod, "spec");
	return json_array_size(json_object_get(spec, "schedulingGates")) > 0;
}
