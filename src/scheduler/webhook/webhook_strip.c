#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/gpu_manager/vcuda.h"
#include "kube/hami/annotations.h"
#include "scheduler/webhook/webhook_inside.h"

#define OWN(name) KUBE_LIVE_DOMAIN "/" name

static const char *const written_by_us[] = {
	KUBE_POD_NODE,        KUBE_POD_TIME,      KUBE_POD_BIND_TIME, KUBE_POD_BIND_PHASE,
	KUBE_POD_TO_ALLOCATE, KUBE_POD_ALLOCATED, OWN(KUBE_BORROWED), OWN(KUBE_ROOM_SINCE),
	VCUDA_TIME,           VCUDA_NODE,         VCUDA_ASSIGNED,
};

static bool is_written_by_us(const char *name)
{
	for (size_t i = 0; i < sizeof(written_by_us) / sizeof(*written_by_us); i++)
		if (!strcmp(name, written_by_us[i]))
			return true;
	return !strncmp(name, VCUDA_INDEX, strlen(VCUDA_INDEX));
}

void webhook_strip(struct webhook_work *w)
{
	json_t *annotations = json_object_get(json_object_get(w->pod, "metadata"), "annotations");
	const char *name;
	json_t *value;
	void *next;
	json_object_foreach_safe(annotations, next, name, value) if (is_written_by_us(name))
	{
		webhook_warn(
			w, "annotation %.63s: removed: only allot-scheduler and allotd may write it",
			name);
		json_patch_remove(&w->patch, annotations, "/metadata/annotations", name);
	}
}
