/* Charges the memory that a context itself takes. When a context ends, forgets everything that was allocated in it. */
#include "library/entry/start/hook_context.h"

#include <string.h>

#include "library/entry/hook_ipc.h"
#include "library/entry/hooks.h"
#include "library/launch/captures.h"
#include "library/launch/inflight/inflight.h"
#include "library/loader/real.h"
#include "library/memory/reserve_wait.h"
#include "library/memory/holding.h"
#include "library/memory/ledger.h"
#include "library/memory/measured.h"
#include "library/memory/ptrmap.h"
#include "library/memory/swap_hold.h"
#include "library/memory/swap_room.h"
#include "library/process.h"
#include "library/state/process_state.h"
#include "library/state/helper.h"
#include "library/swap/swap.h"
#include "library/swap/swap_quiesce.h"
#include "library/sys/locks.h"

#define DEVICES 64

/* Guarded by locks.primary, also while a primary context is made, so that no two threads charge one context. */
static struct {
	CUcontext context;
	uint32_t retained;
} primary[DEVICES];

static uint64_t context_cost(int index)
{
	return atomic_load_explicit(&process_control_device(index)->context_bytes,
				    memory_order_relaxed);
}

static void context_gone(CUcontext context)
{
	struct holding h;

	captures_context_gone(context);
	hook_ipc_context_gone(context);
	swap_context_gone(context);
	charge_context_gone(context);
	if (ptrmap_remove(HOLDING_CONTEXT, (uint64_t)(uintptr_t)context, &h))
		ledger_release_context(h.device, h.bytes);
}

/*
 * Sets *ret_index to -1 if the driver must handle the call: the process is in no tenant, or the device does not exist. Refuses
 * a device that is not the tenant's; a program can name one after clearing CUDA_VISIBLE_DEVICES.
 */
static CUresult find_tenant_device(CUdevice device, int *ret_index)
{
	*ret_index = -1;
	switch (process_join()) {
	case PROCESS_REFUSED: return CUDA_ERROR_SYSTEM_NOT_READY;
	case PROCESS_ACTIVE: break;
	default: return CUDA_SUCCESS;
	}
	if (!process_device_exists(device))
		return CUDA_SUCCESS;
	CUresult result = process_find_device(device, ret_index);
	return result == CUDA_SUCCESS && *ret_index < 0 ? CUDA_ERROR_INVALID_DEVICE : result;
}

/*
 * Returns false if host memory ran out, or if the helper thread cannot be started. Then destroy the context: without the record
 * its charge could never be given back, and without the thread no work would be seen to end.
 */
static bool record_context(CUcontext context, int index, uint64_t cost)
{
	struct holding h = {
		.kind = HOLDING_CONTEXT,
		.key = (uint64_t)(uintptr_t)context,
		.device = index,
		.bytes = cost,
	};

	if (!helper_start() || !ptrmap_insert(&h))
		return false;
	inflight_note_context(context);
	swap_add_context(context);
	swap_start();
	return true;
}

/* Gives quota back for a context that could not be made or recorded. `result` is the result of the driver's call. */
static void unreserve_context(int index, uint64_t cost, CUresult result)
{
	ledger_release_context(index, cost);
	swap_room_check_result(result, index, cost);
}

/* A way to take a reference to a primary context: by cuDevicePrimaryCtxRetain, or by a new green context in it. */
struct reference {
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*create_green)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned int);
	CUgreenCtx *green;
	CUdevResourceDesc desc;
	unsigned int flags;
};

static CUresult add_reference(const struct reference *r, CUcontext *context, CUdevice device)
{
	if (r->retain)
		return r->retain(context, device);
	CUresult result = r->create_green(r->green, r->desc, device, r->flags);
	if (result != CUDA_SUCCESS)
		return result;
	/* The new green context holds a reference to the primary context, whose handle only a retain returns. */
	result = real.cuDevicePrimaryCtxRetain(context, device);
	if (result == CUDA_SUCCESS)
		real.cuDevicePrimaryCtxRelease_v2(device);
	else
		real.cuGreenCtxDestroy(*r->green);
	return result;
}

static void drop_reference(const struct reference *r, CUdevice device)
{
	if (r->retain)
		real.cuDevicePrimaryCtxRelease_v2(device);
	else
		real.cuGreenCtxDestroy(*r->green);
}

/* If the quota has no room for a new context, sets *ret_lacks to the bytes that are needed, otherwise to 0. */
static CUresult retain_primary(const struct reference *r, CUcontext *context, CUdevice device,
			       int index, uint64_t *ret_lacks)
{
	WITH_MEMORY_HELD();
	CUresult result;

	*ret_lacks = 0;
	WITH_LOCK(&locks.primary);
	if (primary[device].context) {
		result = add_reference(r, context, device);
		if (result == CUDA_SUCCESS)
			primary[device].retained++;
		return result;
	}
	uint64_t cost = context_cost(index);
	if (ledger_reserve_context(index, cost)) {
		*ret_lacks = cost;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = swap_room_is_reserved(index, cost) ? CUDA_ERROR_OUT_OF_MEMORY
						    : add_reference(r, context, device);
	if (result != CUDA_SUCCESS) {
		unreserve_context(index, cost, result);
		return result;
	}
	if (!record_context(*context, index, cost)) {
		drop_reference(r, device);
		ledger_release_context(index, cost);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	primary[device].context = *context;
	primary[device].retained = 1;
	return result;
}

static CUresult try_primary(const struct reference *r, CUcontext *context, CUdevice device)
{
	struct reserve_wait wait = { 0 };
	uint64_t lacks = 0;
	int index;
	CUresult result = find_tenant_device(device, &index);

	if (result != CUDA_SUCCESS || index < 0 || device >= DEVICES)
		return result != CUDA_SUCCESS ? result : add_reference(r, context, device);
	/* Wait without locks.primary, so that other contexts can be made and ended meanwhile. */
	do
		result = retain_primary(r, context, device, index, &lacks);
	while (lacks && reserve_wait(index, lacks, &wait));
	if (lacks)
		ledger_count_denial(index);
	return result;
}

DEFINE_HOOK(hook_primary_retain, retain, (CUcontext * context, CUdevice device))
{
	const struct reference by_retain = { .retain = retain };

	return WITH_ROOM(try_primary(&by_retain, context, device));
}

CUresult context_create_green(CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice,
						 unsigned int),
			      CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device,
			      unsigned int flags)
{
	const struct reference by_green = {
		.create_green = create, .green = green, .desc = desc, .flags = flags
	};
	CUcontext context;

	return WITH_ROOM(try_primary(&by_green, &context, device));
}

static bool is_active(CUdevice device)
{
	unsigned int flags;
	int active = 0;

	return real.cuDevicePrimaryCtxGetState &&
	       real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active;
}

/* If the context may end (is_last), drops its events, which must not be queried later. The caller holds locks.primary. */
static void prepare_primary_end(CUdevice device, bool is_last)
{
	if (!is_last)
		return;
	inflight_drop_context(primary[device].context);
	swap_remove_context(primary[device].context);
}

static CUresult finish_primary_end(CUdevice device, bool is_last, CUresult result)
{
	CUcontext context = primary[device].context;
	bool is_left = result != CUDA_SUCCESS || is_active(device);

	if (is_last && is_left)
		swap_add_context(context);
	if (result == CUDA_SUCCESS && primary[device].retained)
		primary[device].retained--;
	if (!is_left) {
		inflight_drop_context(context);
		context_gone(context);
		primary[device].context = NULL;
		primary[device].retained = 0;
	}
	return result;
}

static bool is_tracked(CUdevice device)
{
	return process_is_active() && device >= 0 && device < DEVICES;
}

static CUresult end_primary(CUresult (*end)(CUdevice), CUdevice device, bool is_reset)
{
	WITH_MEMORY_STILL();
	if (!is_tracked(device))
		return end(device);
	WITH_LOCK(&locks.primary);
	if (!primary[device].context)
		return end(device);
	bool is_last = is_reset || primary[device].retained <= 1;
	prepare_primary_end(device, is_last);
	return finish_primary_end(device, is_last, end(device));
}

DEFINE_HOOK(hook_primary_release, release, (CUdevice device))
{
	return end_primary(release, device, false);
}

DEFINE_HOOK(hook_primary_reset, reset, (CUdevice device))
{
	return end_primary(reset, device, true);
}

CUresult context_end_green(CUresult (*destroy)(CUgreenCtx), CUgreenCtx green, CUdevice device)
{
	WITH_MEMORY_STILL();
	if (!is_tracked(device))
		return destroy(green);
	WITH_LOCK(&locks.primary);
	if (!primary[device].context)
		return destroy(green);
	bool is_last = primary[device].retained <= 1;
	prepare_primary_end(device, is_last);
	return finish_primary_end(device, is_last, destroy(green));
}

/* The state of one cuCtxCreate. A device's second context may cost more than the first, so its memory is measured. */
struct creation {
	int index;
	uint64_t cost;
	struct measured measured;
	/* The first attempt exceeded the quota, perhaps because other tenants' calls distorted its measurement. */
	bool is_second;
};

static CUresult begin_create(CUdevice device, struct creation *c)
{
	CUresult result = find_tenant_device(device, &c->index);
	struct reserve_wait wait = { 0 };

	c->is_second = false;
	if (result != CUDA_SUCCESS || c->index < 0)
		return result;
	c->cost = context_cost(c->index);
	/* The driver states the free memory only of the current context's device, so measure nothing for another device. */
	measured_begin(&c->measured, process_current_index() == c->index ? c->index : -1);
	while (ledger_reserve_context(c->index, c->cost))
		if (!reserve_wait(c->index, c->cost, &wait)) {
			ledger_count_denial(c->index);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	if (!swap_room_is_reserved(c->index, c->cost))
		return CUDA_SUCCESS;
	ledger_release_context(c->index, c->cost);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Returns true if the context must be created once more. */
static bool end_create(struct creation *c, CUresult *result, CUcontext *context)
{
	CUresult drivers = *result;

	if (c->index < 0)
		return false;
	if (*result == CUDA_SUCCESS && !c->is_second && !measured_charge(&c->measured)) {
		real.cuCtxDestroy_v2(*context);
		c->is_second = measured_charge_retry(&c->measured);
		if (c->is_second)
			return true;
		*result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (*result == CUDA_SUCCESS && !record_context(*context, c->index, c->cost)) {
		real.cuCtxDestroy_v2(*context);
		*result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (*result != CUDA_SUCCESS) {
		measured_refund(&c->measured);
		unreserve_context(c->index, c->cost, drivers);
	}
	return false;
}

#define CREATES_CONTEXT(hook, params, args) \
	DEFINE_HOOK_WITH_ROOM(hook, create, params, args) \
	{ \
		WITH_MEMORY_HELD(); \
		struct creation c; \
		CUresult result = begin_create(device, &c); \
		if (result != CUDA_SUCCESS) \
			return result; \
		do \
			result = create args; \
		while (end_create(&c, &result, context)); \
		return result; \
	}

CREATES_CONTEXT(hook_ctx_create, (CUcontext * context, unsigned int flags, CUdevice device),
		(context, flags, device))
CREATES_CONTEXT(hook_ctx_create_v3,
		(CUcontext * context, CUexecAffinityParam *affinity, int affinities,
		 unsigned int flags, CUdevice device),
		(context, affinity, affinities, flags, device))
CREATES_CONTEXT(hook_ctx_create_v4,
		(CUcontext * context, CUctxCreateParams *how, unsigned int flags, CUdevice device),
		(context, how, flags, device))

DEFINE_HOOK(hook_ctx_destroy, destroy, (CUcontext context))
{
	WITH_MEMORY_STILL();
	if (!process_is_active())
		return destroy(context);
	inflight_drop_context(context);
	bool was_known = swap_remove_context(context);
	CUresult result = destroy(context);
	if (result == CUDA_SUCCESS)
		context_gone(context);
	else if (was_known)
		swap_add_context(context);
	return result;
}

void hook_context_reset(void)
{
	memset(primary, 0, sizeof(primary));
}
