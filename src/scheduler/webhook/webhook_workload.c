#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "kube/hami/annotations.h"
#include "scheduler/request/request_annotations.h"
#include "scheduler/webhook/webhook.h"
#include "scheduler/webhook/webhook_inside.h"

#define OWN(name) KUBE_LIVE_DOMAIN "/" name

/* Training gets cards near each other, if possible on one NUMA node. Inference gets few nodes, and their least used cards. */
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

/* Refuses estimates that nothing enforces: docs/decisions/stated-durations.md says why. */
static int refuse_estimates(struct webhook_work *w)
{
	if (webhook_meta(w, "annotations", OWN(KUBE_DURATION)))
		return error_set(
			w->err, EINVAL,
			OWN(KUBE_DURATION) ": is not used, because nothing enforces it: set "
					   "activeDeadlineSeconds in the pod's spec instead");
	if (webhook_meta(w, "annotations", OWN(KUBE_CONCURRENCY)))
		return error_set(
			w->err, EINVAL,
			OWN(KUBE_CONCURRENCY) ": is not used: request the GPU memory and time that "
					      "the pod needs for its requests");
	return 0;
}

int webhook_apply_workload(struct webhook_work *w)
{
	int r = refuse_estimates(w);
	return r < 0 ? r : apply_presets(w);
}
