#include "gpu/xid.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "driver/nvml_abi.h"

#define EVENT_XID 0x8ULL /* nvmlEventTypeXidCriticalError */

typedef struct nvmlEventSet_st *nvmlEventSet_t;

typedef struct nvmlEventData_st {
	nvmlDevice_t device;
	unsigned long long eventType, eventData;
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

#define ENTRIES(X) \
	X(init, "nvmlInit_v2", (void)) \
	X(shutdown, "nvmlShutdown", (void)) \
	X(count, "nvmlDeviceGetCount_v2", (unsigned *)) \
	X(handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned, nvmlDevice_t *)) \
	X(uuid, "nvmlDeviceGetUUID", (nvmlDevice_t, char *, unsigned)) \
	X(set_create, "nvmlEventSetCreate", (nvmlEventSet_t *)) \
	X(set_free, "nvmlEventSetFree", (nvmlEventSet_t)) \
	X(set_add, "nvmlDeviceRegisterEvents", (nvmlDevice_t, unsigned long long, nvmlEventSet_t)) \
	X(set_wait, "nvmlEventSetWait_v2", (nvmlEventSet_t, nvmlEventData_t *, unsigned))

struct xid_watch {
	void *library;
	bool is_initialized;
	nvmlEventSet_t set;
#define X(field, symbol, parameters) nvmlReturn_t(*field) parameters;
	ENTRIES(X)
#undef X
};

bool xid_is_programs(uint64_t xid)
{
	/* Engine exception, page fault, stopped work, cleanup after it, video, context switch. */
	static const uint64_t theirs[] = { 13, 31, 43, 45, 68, 109 };
	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
		if (theirs[i] == xid)
			return true;
	return false;
}

struct xid_watch *xid_watch_close(struct xid_watch *w)
{
	if (!w)
		return NULL;
	if (w->set)
		w->set_free(w->set);
	if (w->is_initialized)
		w->shutdown();
	if (w->library)
		dlclose(w->library);
	free(w);
	return NULL;
}

static void cleanup_watch(struct xid_watch **w)
{
	xid_watch_close(*w);
}

static int load(struct xid_watch *w, const char *library, struct error *err)
{
	w->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!w->library)
		return error_set(err, ENODEV, "%s", dlerror());
#define X(field, symbol, parameters) \
	w->field = (__typeof__(w->field))dlsym(w->library, symbol); \
	if (!w->field) \
		return error_set(err, EOPNOTSUPP, "%s lacks %s", library, symbol);
	ENTRIES(X)
#undef X
	return 0;
}

/* Not every card tells: instances of MIG do not. Returns how many do. */
static unsigned add_cards(struct xid_watch *w)
{
	unsigned count = 0, added = 0;
	if (w->count(&count) != NVML_SUCCESS)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		nvmlDevice_t device;
		if (w->handle(i, &device) == NVML_SUCCESS &&
		    w->set_add(device, EVENT_XID, w->set) == NVML_SUCCESS)
			added++;
	}
	return added;
}

int xid_watch_open(const char *library, struct xid_watch **ret, struct error *err)
{
	cleanup(cleanup_watch) struct xid_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return error_set_errno(err, ENOMEM, "Xid errors");
	int r = load(w, library, err);
	if (r < 0)
		return r;
	nvmlReturn_t n = w->init();
	if (n != NVML_SUCCESS)
		return error_set(err, ENODEV, "nvmlInit: NVML code %d", (int)n);
	w->is_initialized = true;
	if (w->set_create(&w->set) != NVML_SUCCESS || !add_cards(w))
		return error_set(err, EOPNOTSUPP, "the driver tells of no card's Xid errors");
	*ret = steal_pointer(&w);
	return 0;
}

int xid_watch_wait(struct xid_watch *w, unsigned timeout_ms, struct xid_event *ret)
{
	nvmlEventData_t data = { 0 };
	struct xid_event event = { 0 };
	nvmlReturn_t r = w->set_wait(w->set, &data, timeout_ms);
	if (r == NVML_ERROR_TIMEOUT || (r == NVML_SUCCESS && data.eventType != EVENT_XID))
		return -ETIMEDOUT;
	if (r != NVML_SUCCESS ||
	    w->uuid(data.device, event.uuid_text, sizeof(event.uuid_text)) != NVML_SUCCESS)
		return -EIO;
	event.uuid_text[sizeof(event.uuid_text) - 1] = '\0';
	event.xid = data.eventData;
	*ret = event;
	return 0;
}
