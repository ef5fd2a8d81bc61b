#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "kube/hami/annotations.h"
#include "kube/util/object.h"
#include "scheduler/request/request_annotations.h"
#include "scheduler/webhook/webhook.h"
#include "scheduler/webhook/webhook_inside.h"

#define OWN(name) KUBE_LIVE_DOMAIN "/" name
#define CONCURRENCY_MAX 1000000

/*
 * Default placement by kind of workload. Training gets cards near each other, on one NUMA node if possible. Inference gets few
 * nodes, and on each the least used card.
 */
static const struct preset {
	const char *workload, *annotation, *value;
} presets[] = {
	{ "training", REQUEST_GPU_POLICY, "topology-aware,numa" },
	{ "inference", REQUEST_NODE_POLICY, "binpack" },
	{ "inference", REQUEST_GPU_POLICY, "spread" },
};

static int apply_presets(struct webhook_work *w)
{
	const char *workload = webhook_meta(w, "annotations", OWN(KUBE_WORKLOAD));
	json_t *metadata = json_object_get(w->pod, "metadata");
	bool is_known = false;
	if (!workload)
		workload = webhook_meta(w, "labels", OWN(KUBE_WORKLOAD));
	if (!workload)
		return 0;
	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
		const struct preset *p = &presets[i];
		if (strcmp(p->workload, workload) != 0)
			continue;
		is_known = true;
		if (webhook_meta(w, "annotations", p->annotation))
			continue;
		json_t *annotations = json_patch_member(&w->patch, metadata, "/metadata",
							"annotations", json_object());
		if (annotations)
			json_patch_put(&w->patch, annotations, "/metadata/annotations",
				       p->annotation, json_string(p->value));
	}
	return is_known ? 0
			: error_set(w->err, EINVAL,
				    OWN(KUBE_WORKLOAD) ": '%.60s': must be training or inference",
				    workload);
}

/*
 * Checks the pod's annotations of its duration and its concurrency (requests at a time). Returns -ENODATA if the pod has
 * neither annotation, and no activeDeadlineSeconds, which also counts as an estimate.
 */
static int read_estimate(struct webhook_work *w)
{
	const char *duration = webhook_meta(w, "annotations", OWN(KUBE_DURATION));
	const char *concurrency = webhook_meta(w, "annotations", OWN(KUBE_CONCURRENCY));
	const json_t *spec = json_object_get(w->pod, "spec");
	uint64_t ns;
	int64_t count;
	int r = duration ? parse_duration(duration, &ns, w->err) : 0;
	if (r < 0)
		return error_add(w->err, -EINVAL, OWN(KUBE_DURATION));
	r = concurrency ? parse_int(concurrency, 1, CONCURRENCY_MAX, &count, w->err) : 0;
	if (r < 0)
		return error_add(w->err, -EINVAL, OWN(KUBE_CONCURRENCY));
	return duration || concurrency ||
			       json_is_integer(json_object_get(spec, "activeDeadlineSeconds"))
		       ? 0
		       : -ENODATA;
}

int webhook_apply_workload(struct webhook_work *w)
{
	int r = read_estimate(w);
	if (r == -ENODATA && w->terms->needs_estimate)
		return error_set(
			w->err, EACCES,
			"this pod must state how long it runs, or how many requests it serves at a time: "
			"set annotation " OWN(KUBE_DURATION) ", for example 2h, or " OWN(
				KUBE_CONCURRENCY) ", for example 8");
	return r < 0 && r != -ENODATA ? r : apply_presets(w);
}
