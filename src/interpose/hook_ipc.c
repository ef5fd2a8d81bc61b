#include "interpose/hook_ipc.h"

#include <string.h>
#include <sys/mman.h>

#include "interpose/charge.h"
#include "interpose/exports.h"
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/real.h"

#define REFRESH_EVERY_NS (20 * NS_PER_MS)
#define FIRST_CAPACITY 64

/* Memory that this process has exported, or opened. */
struct shared {
	uint64_t ptr, key, bytes;
	CUcontext context; /* it dies with */
	int index;
	uint32_t opens; /* 0: exported */
	bool is_charged;
};

_Atomic uint32_t hook_ipc_exports;

/* Guards the list; held over the driver's calls, so that an address can't be closed and given anew. */
static struct sys_lock ipc_lock;
static struct shared *list;
static size_t count, capacity;
static _Atomic uint32_t uncharged; /* opened, and charged to another process */

static bool make_room(void)
{
	size_t more = capacity ? capacity * 2 : FIRST_CAPACITY;

	if (count < capacity)
		return true;
	struct shared *grown = mmap(NULL, more * sizeof(*grown), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (grown == MAP_FAILED)
		return false;
	if (list) {
		memcpy(grown, list, count * sizeof(*grown));
		munmap(list, capacity * sizeof(*list));
	}
	list = grown;
	capacity = more;
	return true;
}

static struct shared *find(uint64_t ptr, bool is_export)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].ptr == ptr && is_export == (list[i].opens == 0))
			return &list[i];
	return NULL;
}

/* Holds ipc_lock, as do all below but the hooks. What a closed import was charged goes back. */
static void drop(struct shared *s)
{
	if (s->opens == 0)
		atomic_fetch_sub(&hook_ipc_exports, 1);
	else if (!s->is_charged)
		atomic_fetch_sub(&uncharged, 1);
	if (s->is_charged)
		exports_leave(s->key);
	if (s->is_charged && s->opens)
		ledger_release(s->index, s->bytes);
	*s = list[--count];
}

void hook_ipc_forget_export(uint64_t ptr)
{
	WITH_LOCK(&ipc_lock);
	struct shared *s = find(ptr, true);
	if (s)
		drop(s);
}

void hook_ipc_context_gone(CUcontext context)
{
	WITH_LOCK(&ipc_lock);
	for (size_t i = count; i-- > 0;)
		if (list[i].context == context)
			drop(&list[i]);
}

void hook_ipc_refresh(uint64_t now_ns)
{
	static uint64_t last_ns;

	if (!atomic_load_explicit(&uncharged, memory_order_relaxed) ||
	    now_ns - last_ns < REFRESH_EVERY_NS ||
	    atomic_load(&atomic_load(&guest.control)->adopting) || !sys_trylock(&ipc_lock))
		return;
	last_ns = now_ns;
	for (size_t i = 0; i < count; i++) {
		if (list[i].is_charged || !exports_take(list[i].key))
			continue;
		/* It is held already: nothing to ask the quota. */
		ledger_adjust(list[i].index, (int64_t)list[i].bytes);
		list[i].is_charged = true;
		atomic_fetch_sub(&uncharged, 1);
	}
	sys_unlock(&ipc_lock);
}

void hook_ipc_move(struct region_report *report, const struct region_slot *slot)
{
	WITH_LOCK(&ipc_lock);
	for (size_t i = 0; i < count; i++)
		if (list[i].is_charged)
			exports_move(report, slot, list[i].key);
}

void hook_ipc_reset(void)
{
	ipc_lock = (struct sys_lock){ 0 };
	count = 0;
	atomic_store(&uncharged, 0);
	atomic_store(&hook_ipc_exports, 0);
}

/* The allocation that ptr is in; false when the driver can't tell. */
static bool range_of(CUdeviceptr ptr, uint64_t *ret_base, uint64_t *ret_bytes)
{
	CUdeviceptr base;
	size_t bytes;

	if (!real.cuMemGetAddressRange_v2 ||
	    real.cuMemGetAddressRange_v2(&base, &bytes, ptr) != CUDA_SUCCESS)
		return false;
	*ret_base = base;
	*ret_bytes = charge_rounded(bytes);
	return true;
}

static CUcontext current(void)
{
	CUcontext context = NULL;

	if (real.cuCtxGetCurrent)
		real.cuCtxGetCurrent(&context);
	return context;
}

/* Without memory for the note, whoever opens it is charged as well. */
static void note_export(const CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct shared s = { .key = exports_key(handle, sizeof(*handle)), .is_charged = true };
	struct holding h;

	if (!range_of(ptr, &s.ptr, &s.bytes) || !ptrmap_find(HOLDING_MEMORY, s.ptr, &h) ||
	    find(s.ptr, true) || !make_room())
		return;
	s.index = h.device;
	s.context = (CUcontext)(uintptr_t)h.owner;
	exports_take(s.key);
	list[count++] = s;
	atomic_fetch_add(&hook_ipc_exports, 1);
}

CUresult hook_ipc_get(CUresult (*get)(CUipcMemHandle *, CUdeviceptr), CUipcMemHandle *handle,
		      CUdeviceptr ptr)
{
	if (!guest_is_active())
		return get(handle, ptr);
	WITH_LOCK(&ipc_lock);
	CUresult result = get(handle, ptr);
	if (result == CUDA_SUCCESS)
		note_export(handle, ptr);
	return result;
}

/* False: not charged to anyone in this tenant, and over its quota. */
static bool note_import(const CUipcMemHandle *handle, CUdeviceptr ptr, int index)
{
	struct shared s = {
		.ptr = ptr,
		.key = exports_key(handle, sizeof(*handle)),
		.context = current(),
		.index = index,
		.opens = 1,
	};
	uint64_t base;

	if (!make_room())
		return false;
	range_of(ptr, &base, &s.bytes);
	if (exports_take(s.key)) {
		struct holding h = { .device = index, .bytes = s.bytes };
		if (!charge_begin(&h)) {
			exports_leave(s.key);
			return false;
		}
		s.is_charged = true;
	}
	atomic_fetch_add(&uncharged, !s.is_charged);
	list[count++] = s;
	return true;
}

/* The driver tells how much it is only once it is open; nothing new is made by that. */
CUresult hook_ipc_open(CUresult (*open)(CUdeviceptr *, CUipcMemHandle, unsigned int),
		       CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	int index = charge_index();

	if (index < 0)
		return open(ptr, handle, flags);
	WITH_LOCK(&ipc_lock);
	CUresult result = open(ptr, handle, flags);
	if (result != CUDA_SUCCESS)
		return result;
	/* The same address again: the driver counts how often it was opened. */
	struct shared *s = find(*ptr, false);
	if (s) {
		s->opens++;
	} else if (!note_import(&handle, *ptr, index)) {
		if (real.cuIpcCloseMemHandle)
			real.cuIpcCloseMemHandle(*ptr);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return result;
}

CUresult hook_ipc_close(CUresult (*close)(CUdeviceptr), CUdeviceptr ptr)
{
	if (!guest_is_active())
		return close(ptr);
	WITH_LOCK(&ipc_lock);
	CUresult result = close(ptr);
	struct shared *s = result == CUDA_SUCCESS ? find(ptr, false) : NULL;
	if (s && s->opens > 1)
		s->opens--;
	else if (s)
		drop(s);
	return result;
}
