#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/nvml/nvml.h"

#define NO_ATTACH 2 /* NVML_INIT_FLAG_NO_ATTACH */

struct link nvml_link;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
static pid_t owner; /* the process that opened the link */
/* The GPUs in the order of PCI addresses, then their MIG instances. */
static uint32_t cards_n, devices_n;
static struct nvmlDevice_st devices[SIM_MAX_CARDS];

static bool is_instance(const struct nvmlDevice_st *device)
{
	return device->info.mig == SIM_MIG_INSTANCE;
}

static int in_order(const void *a, const void *b)
{
	const struct nvmlDevice_st *x = a, *y = b;
	int address = sim_pci_compare(&x->info, &y->info);

	if (is_instance(x) != is_instance(y))
		return is_instance(x) - is_instance(y);
	return address ? address : (x->card > y->card) - (x->card < y->card);
}

/* GPUs are numbered from 0, and so are the instances of each GPU. */
static void number(void)
{
	cards_n = 0;
	for (uint32_t i = 0; i < devices_n; i++) {
		bool follows = is_instance(&devices[i]) && is_instance(&devices[i - 1]) &&
			       devices[i].info.parent == devices[i - 1].info.parent;

		cards_n += !is_instance(&devices[i]);
		if (!is_instance(&devices[i]))
			devices[i].index = i;
		else
			devices[i].index = follows ? devices[i - 1].index + 1 : 0;
	}
}

static nvmlReturn_t start(unsigned int flags)
{
	const char *path = getenv("ALLOT_SIM_SOCKET");

	NVML_FAIL_IF(!path || !*path || link_open(&nvml_link, path, SIM_KIND_NVML) < 0,
		     NVML_ERROR_DRIVER_NOT_LOADED);
	for (uint32_t i = 0; i < nvml_link.cards; i++) {
		devices[i].card = i;
		if (link_card_info(&nvml_link, i, &devices[i].info)) {
			link_close(&nvml_link);
			return NVML_ERROR_UNKNOWN;
		}
	}
	owner = getpid();
	devices_n = nvml_link.cards;
	qsort(devices, devices_n, sizeof(*devices), in_order);
	number();
	/* With this flag there are no devices, as for NVML 580 on an H200. */
	if (flags & NO_ATTACH)
		cards_n = devices_n = 0;
	return NVML_SUCCESS;
}

static nvmlReturn_t init(unsigned int flags)
{
	nvmlReturn_t r = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	/* The link is dead if its server is gone, or if it is a forked child's copy of its parent's link. */
	if (users && atomic_load(&nvml_link.dead)) {
		link_close(&nvml_link);
		users = 0;
	}
	if (!users)
		r = start(flags);
	if (r == NVML_SUCCESS)
		users++;
	pthread_mutex_unlock(&lock);
	return r;
}

NVML_FUNCTION(nvmlInit, (void), init(0))
NVML_FUNCTION(nvmlInit_v2, (void), init(0))
NVML_FUNCTION(nvmlInitWithFlags, (unsigned int flags), init(flags))

nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t r = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!users)
		r = NVML_ERROR_UNINITIALIZED;
	else if (--users == 0)
		link_close(&nvml_link);
	pthread_mutex_unlock(&lock);
	return r;
}

/* The real NVML works in a forked child. There the copied link is dead (server_link.h), so this opens a new one. */
static void follow_fork(void)
{
	pthread_mutex_lock(&lock);
	if (users && atomic_load(&nvml_link.dead) && owner != getpid()) {
		link_close(&nvml_link);
		if (link_open(&nvml_link, getenv("ALLOT_SIM_SOCKET"), SIM_KIND_NVML) == 0)
			owner = getpid();
	}
	pthread_mutex_unlock(&lock);
}

bool nvml_is_up(void)
{
	if (atomic_load_explicit(&nvml_link.dead, memory_order_relaxed))
		follow_fork();
	return __atomic_load_n(&users, __ATOMIC_RELAXED) > 0;
}

uint32_t nvml_devices(void)
{
	return devices_n;
}

struct nvmlDevice_st *nvml_device_at(uint32_t card)
{
	for (uint32_t i = 0; i < devices_n; i++)
		if (devices[i].card == card)
			return &devices[i];
	return NULL;
}

const struct nvmlDevice_st *nvml_device(nvmlDevice_t device, nvmlReturn_t *ret_result)
{
	bool is_up = nvml_is_up();

	*ret_result = is_up ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
	if (!is_up || device < devices || device >= devices + devices_n ||
	    ((uintptr_t)device - (uintptr_t)devices) % sizeof(*devices))
		return NULL;
	*ret_result = NVML_SUCCESS;
	return device;
}

const struct nvmlDevice_st *nvml_whole_card(nvmlDevice_t handle, nvmlReturn_t *ret_result)
{
	const struct nvmlDevice_st *device = nvml_device(handle, ret_result);

	if (!device || !is_instance(device))
		return device;
	*ret_result = NVML_ERROR_NOT_SUPPORTED;
	return NULL;
}

struct sim_card_state *nvml_state(nvmlDevice_t handle, nvmlReturn_t *ret_result)
{
	return nvml_state_since(handle, 0, ret_result);
}

struct sim_card_state *nvml_state_since(nvmlDevice_t handle, uint64_t age_us,
					nvmlReturn_t *ret_result)
{
	const struct nvmlDevice_st *device = nvml_device(handle, ret_result);
	struct sim_card_state *state;
	void *payload = NULL;
	size_t bytes = 0;

	if (!device)
		return NULL;
	if (link_call(&nvml_link,
		      (struct sim_request_msg){
			      .type = SIM_CARD_STATE, .card = device->card, .arg = { age_us } },
		      NULL, &payload, &bytes) ||
	    bytes < sizeof(*state)) {
		free(payload);
		*ret_result = NVML_ERROR_UNKNOWN;
		return NULL;
	}
	state = payload;
	if (state->lost ||
	    bytes < sizeof(*state) + state->processes * sizeof(struct sim_process_state)) {
		*ret_result = state->lost ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_UNKNOWN;
		free(state);
		return NULL;
	}
	return state;
}

nvmlReturn_t nvml_put_text(char *to, unsigned int length, const char *text)
{
	NVML_FAIL_IF(!to, NVML_ERROR_INVALID_ARGUMENT);
	NVML_FAIL_IF(length <= strlen(text), NVML_ERROR_INSUFFICIENT_SIZE);
	strcpy(to, text);
	return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlSystemGetDriverVersion, (char *version, unsigned int length),
	      nvml_is_up() ? nvml_put_text(version, length, "580.159.04") : NVML_ERROR_UNINITIALIZED)
NVML_FUNCTION(nvmlSystemGetNVMLVersion, (char *version, unsigned int length),
	      nvml_is_up() ? nvml_put_text(version, length, "13.580.159.04")
			   : NVML_ERROR_UNINITIALIZED)

static nvmlReturn_t cuda_version(int *version)
{
	NVML_FAIL_IF(!version, NVML_ERROR_INVALID_ARGUMENT);
	*version = 13000;
	return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlSystemGetCudaDriverVersion, (int *version), cuda_version(version))
NVML_FUNCTION(nvmlSystemGetCudaDriverVersion_v2, (int *version), cuda_version(version))

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
	char path[64], text[256];

	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	NVML_FAIL_IF(!name || !length, NVML_ERROR_INVALID_ARGUMENT);
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	FILE *file = fopen(path, "re");
	NVML_FAIL_IF(!file, NVML_ERROR_NOT_FOUND);
	size_t n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	if (!n)
		return NVML_ERROR_NO_DATA; /* A kernel thread has no command line. */
	text[n] = '\0';                    /* Keep only the first word, which a NUL follows. */
	snprintf(name, length, "%s", text);
	return NVML_SUCCESS;
}

static nvmlReturn_t get_count(unsigned int *count)
{
	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	NVML_FAIL_IF(!count, NVML_ERROR_INVALID_ARGUMENT);
	*count = cards_n;
	return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetCount, (unsigned int *count), get_count(count))
NVML_FUNCTION(nvmlDeviceGetCount_v2, (unsigned int *count), get_count(count))

static nvmlReturn_t by_index(unsigned int index, nvmlDevice_t *device)
{
	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	/* A MIG instance is found only through its GPU. */
	if (!device || index >= cards_n)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

/* As NVML 580 on an H200, this first version sets *device to the last device if the index is too large. */
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
	if (nvml_is_up() && device && cards_n && index >= cards_n)
		*device = &devices[cards_n - 1];
	return by_index(index, device);
}

NVML_FUNCTION(nvmlDeviceGetHandleByIndex_v2, (unsigned int index, nvmlDevice_t *device),
	      by_index(index, device))

static nvmlReturn_t return_device(uint32_t place, nvmlDevice_t *device)
{
	*device = &devices[place];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	NVML_FAIL_IF(!uuid || !device, NVML_ERROR_INVALID_ARGUMENT);
	for (uint32_t i = 0; i < devices_n; i++)
		if (!strcmp(devices[i].info.uuid, uuid))
			return return_device(i, device);
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	NVML_FAIL_IF(!uuid || !device, NVML_ERROR_INVALID_ARGUMENT);
	NVML_FAIL_IF(uuid->version != nvmlUUID_v1, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	NVML_FAIL_IF(uuid->type != 1 && uuid->type != 2, NVML_ERROR_INVALID_ARGUMENT);
	for (uint32_t i = 0; i < devices_n; i++)
		if (uuid->type == 1 ? !strncmp(devices[i].info.uuid, uuid->value.str,
					       sizeof(uuid->value.str))
				    : !memcmp(devices[i].info.uuid_bytes, uuid->value.bytes, 16))
			return return_device(i, device);
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
	char text[32];

	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	NVML_FAIL_IF(!serial || !device, NVML_ERROR_INVALID_ARGUMENT);
	for (uint32_t i = 0; i < cards_n; i++)
		if (nvmlDeviceGetSerial(&devices[i], text, sizeof(text)) == NVML_SUCCESS &&
		    !strcmp(text, serial))
			return by_index(i, device);
	return NVML_ERROR_NOT_FOUND;
}

/*
 * Lists all GPUs; with `other`, only GPUs at most `level` (nvmlGpuTopologyLevel_t) away from `other`, without `other` itself.
 * If `out` is NULL, only counts them. As with NVML 580 on an H200, unused entries of `out` stay unchanged. If `other` is NULL,
 * filling `out` also leaves *count unchanged.
 */
static nvmlReturn_t give_devices(nvmlDevice_t other, int level, unsigned int *count,
				 nvmlDevice_t *out)
{
	unsigned int n = 0;
	int distance = 0;

	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	NVML_FAIL_IF(!count || (*count == 0) != (out == NULL), NVML_ERROR_INVALID_ARGUMENT);
	for (uint32_t i = 0; i < cards_n; i++) {
		if (other && (&devices[i] == other ||
			      nvmlDeviceGetTopologyCommonAncestor(other, &devices[i], &distance) !=
				      NVML_SUCCESS ||
			      distance > level))
			continue;
		if (out && n < *count)
			out[n] = &devices[i];
		n++;
	}
	if (!out)
		*count = n;
	else if (other && n < *count)
		*count = n;
	return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlSystemGetTopologyGpuSet,
	      (unsigned int cpu, unsigned int *count, nvmlDevice_t *out),
	      give_devices(NULL, 0, count, out))

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
					      unsigned int *count, nvmlDevice_t *out)
{
	nvmlReturn_t r;

	return nvml_device(device, &r) ? give_devices(device, level, count, out) : r;
}

/* Units are S-class chassis; none is simulated. */
NVML_FUNCTION(nvmlUnitGetDevices, (nvmlUnit_t unit, unsigned int *count, nvmlDevice_t *out),
	      nvml_is_up() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED)

static nvmlReturn_t by_pci(const char *id, nvmlDevice_t *device)
{
	unsigned int domain = 0, bus = 0, slot = 0;

	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	NVML_FAIL_IF(!id || !device || sscanf(id, "%8x:%2x:%2x", &domain, &bus, &slot) != 3,
		     NVML_ERROR_INVALID_ARGUMENT);
	for (uint32_t i = 0; i < cards_n; i++)
		if (devices[i].info.pci_domain == domain && devices[i].info.pci_bus == bus &&
		    devices[i].info.pci_device == slot)
			return by_index(i, device);
	return NVML_ERROR_NOT_FOUND;
}

NVML_FUNCTION(nvmlDeviceGetHandleByPciBusId, (const char *id, nvmlDevice_t *device),
	      by_pci(id, device))
NVML_FUNCTION(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, nvmlDevice_t *device),
	      by_pci(id, device))

const char *nvmlErrorString(nvmlReturn_t result)
{
	switch ((int)result) {
	case 0: return "Success";
	case 1: return "Uninitialized";
	case 2: return "Invalid Argument";
	case 3: return "Not Supported";
	case 4: return "Insufficient Permissions";
	case 6: return "Not Found";
	case 7: return "Insufficient Size";
	case 9: return "Driver Not Loaded";
	case 10: return "Timeout";
	case 13: return "Function Not Found";
	case 15: return "GPU is lost";
	case 25: return "Argument Version Mismatch";
	default: return "Unknown Error";
	}
}
