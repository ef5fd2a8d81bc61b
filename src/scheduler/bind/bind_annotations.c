#include "scheduler/bind/bind_annotations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "kube/client/patch.h"
#include "kube/hami/annotations.h"
#include "kube/util/sanitize.h"

/* Most bytes of a label's value. A longer node name gets no label, only the annotation. */
#define LABEL_MAX 63

char *bind_pod_patch(const struct decision *d, const char *shares, int64_t now_s,
		     const char *version)
{
	char now[24];
	snprintf(now, sizeof(now), "%" PRId64, now_s);
	bool borrows = shares_have_borrowed(&d->shares);
	cleanup_free char *borrowed = borrows ? shares_format_borrowed(&d->shares) : NULL;
	const struct patch_pair annotation[] = {
		{ KUBE_POD_NODE, d->node },
		{ KUBE_POD_TIME, now },
		{ KUBE_POD_TO_ALLOCATE, shares },
		{ KUBE_POD_ALLOCATED, shares },
		{ KUBE_POD_BIND_TIME, now },
		{ KUBE_POD_BIND_PHASE, "allocating" },
		/* last, so that it can be left out if the pod borrows no compute */
		{ KUBE_LIVE_DOMAIN "/" KUBE_BORROWED, borrowed },
	};
	const struct patch_pair label = { KUBE_POD_NODE, d->node };
	if (borrows && !borrowed)
		return NULL;
	return patch_metadata(annotation, sizeof(annotation) / sizeof(annotation[0]) - !borrows,
			      &label, strlen(d->node) <= LABEL_MAX, version);
}

char *bind_failed_patch(const char *version)
{
	const struct patch_pair phase = { KUBE_POD_BIND_PHASE, "failed" };
	return patch_metadata(&phase, 1, NULL, 0, version);
}

/* With the pod's uid and version, the server binds exactly the pod that was read, or fails. */
char *bind_body(const struct decision *d, const char *version)
{
	cleanup_json json_t *body = json_pack("{s:s,s:s,s:{s:s,s:s,s:s,s:s},s:{s:s,s:s,s:s}}",
					      "apiVersion", "v1", "kind", "Binding", "metadata",
					      "name", d->pod, "namespace", d->pod_namespace, "uid",
					      d->uid, "resourceVersion", version, "target",
					      "apiVersion", "v1", "kind", "Node", "name", d->node);
	return body ? json_dumps(body, JSON_COMPACT) : NULL;
}

int bind_check_pod(const struct decision *d, const struct kube_pod *pod, struct error *err)
{
	int r = 0;
	if (strcmp(pod->uid, d->uid) != 0)
		r = error_set(err, ESTALE,
			      "pod %s/%s: was deleted and created again: its uid is %s, not %s",
			      d->pod_namespace, d->pod, pod->uid, d->uid);
	else if (*pod->node && strcmp(pod->node, d->node) != 0)
		r = error_set(err, ESTALE, "pod %s/%s: is already bound to node %s, not to %s",
			      d->pod_namespace, d->pod, pod->node, d->node);
	else if (pod->is_terminating)
		r = error_set(err, ESTALE, "pod %s/%s: is being deleted", d->pod_namespace, d->pod);
	else if (pod->phase == POD_ENDED)
		r = error_set(err, ESTALE, "pod %s/%s: has ended", d->pod_namespace, d->pod);
	return r < 0 ? error_sanitize(err, r) : 0;
}

bool bind_is_annotated(const struct decision *d, const char *shares, const struct kube_pod *pod)
{
	return !strcmp(pod->vgpu_node, d->node) && pod->allocated && !strcmp(pod->allocated, shares);
}

void bind_success_text(const struct decision *d, char *text, size_t size)
{
	snprintf(text, size, "Successfully binding node [%s] to %s/%s", d->node, d->pod_namespace,
		 d->pod);
}
