#include "library/swap/swap_backing.h"

#include <string.h>
#include <sys/mman.h>

#include "library/loader/real.h"
#include "library/state/process_state.h"
#include "library/swap/fd_exchange_client.h"
#include "library/swap/swap_arena.h"
#include "library/swap/swap_peers.h"
#include "library/sys/locks.h"

#define FIRST_CAPACITY 1024
#define ACCESS_MAX (1 + SWAP_PEERS_MAX)
#define READ_WRITE 3        /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
#define HAS_DESCRIPTORS 103 /* CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */

/* All backings (swap_backing.h), sorted by address for binary search. */
static struct backing *list;
static uint32_t count, capacity;
static struct {
	_Atomic uint64_t movable_bytes, kept_bytes, out_bytes;
} sums[REGION_MAX_DEVICES];
/* Whether the driver can export the device's memory as a descriptor: 0 not asked yet, 1 no, 2 yes. */
static _Atomic uint8_t descriptors[REGION_MAX_DEVICES];

/* How many backings begin at or before ptr. The caller holds locks.swap_backing. */
static uint32_t place_of(CUdeviceptr ptr)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (list[middle].base <= ptr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The caller holds locks.swap_backing. */
static struct backing *find(CUdeviceptr ptr)
{
	uint32_t i = place_of(ptr);

	return i && ptr - list[i - 1].base < list[i - 1].bytes ? &list[i - 1] : NULL;
}

static bool make_room(void)
{
	uint32_t more = capacity ? capacity * 2 : FIRST_CAPACITY;

	if (count < capacity)
		return true;
	void *at = sys_map(list, capacity * sizeof(*list), more * sizeof(*list));
	if (!at)
		return false;
	list = at;
	capacity = more;
	return true;
}

static bool insert(const struct backing *b)
{
	WITH_LOCK(&locks.swap_backing);
	if (!make_room())
		return false;
	uint32_t i = place_of(b->base);
	memmove(&list[i + 1], &list[i], (count - i) * sizeof(*list));
	list[i] = *b;
	count++;
	return true;
}

static bool remove_backing(CUdeviceptr ptr, struct backing *ret)
{
	WITH_LOCK(&locks.swap_backing);
	struct backing *b = find(ptr);
	if (!b || b->base != ptr)
		return false;
	*ret = *b;
	count--;
	memmove(b, b + 1, (size_t)(&list[count] - b) * sizeof(*b));
	atomic_fetch_sub(ret->is_kept ? &sums[ret->index].kept_bytes
				      : &sums[ret->index].movable_bytes,
			 ret->bytes);
	if (!ret->is_resident)
		atomic_fetch_sub(&sums[ret->index].out_bytes, ret->bytes);
	return true;
}

/* Lists the devices that may access the backing: its own, and the peers of its context (swap_peers.h). Returns their number. */
static size_t list_access(const struct backing *b, CUmemAccessDesc access[ACCESS_MAX])
{
	CUdevice peer[SWAP_PEERS_MAX];
	size_t n = 1 + swap_peers_of(b->owner, peer);

	for (size_t i = 0; i < n; i++)
		access[i] = (CUmemAccessDesc){
			.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
				      .id = i ? peer[i - 1] : b->device },
			.flags = READ_WRITE,
		};
	return n;
}

CUresult swap_backing_map(CUdeviceptr base, uint64_t bytes, CUmemGenericAllocationHandle handle,
			  const CUmemAccessDesc *access, size_t n)
{
	CUresult result = real.cuMemMap(base, bytes, 0, handle, 0);

	if (result != CUDA_SUCCESS)
		return result;
	result = real.cuMemSetAccess(base, bytes, access, n);
	if (result != CUDA_SUCCESS)
		real.cuMemUnmap(base, bytes);
	return result;
}

static CUresult create_and_map(struct backing *b)
{
	CUmemLocation place = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = b->device };
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = b->is_exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
							 : 0,
		.location = place,
	};
	CUmemAccessDesc access[ACCESS_MAX];
	CUresult result = real.cuMemCreate(&b->handle, b->bytes, &prop, 0);

	if (result != CUDA_SUCCESS)
		return result;
	result = swap_backing_map(b->base, b->bytes, b->handle, access, list_access(b, access));
	if (result != CUDA_SUCCESS)
		real.cuMemRelease(b->handle);
	return result;
}

static CUresult unmap_and_release(struct backing *b)
{
	CUresult result = real.cuMemUnmap(b->base, b->bytes);

	if (result == CUDA_SUCCESS)
		real.cuMemRelease(b->handle);
	return result;
}

CUresult swap_backing_populate(struct backing *b)
{
	CUresult result = create_and_map(b);

	if (result == CUDA_SUCCESS) {
		b->is_resident = true;
		atomic_fetch_sub(&sums[b->index].out_bytes, b->bytes);
	}
	return result;
}

CUresult swap_backing_evict(struct backing *b)
{
	CUresult result = unmap_and_release(b);

	if (result == CUDA_SUCCESS) {
		b->is_resident = false;
		atomic_fetch_add(&sums[b->index].out_bytes, b->bytes);
	}
	return result;
}

static bool has_driver(void)
{
	return real.cuMemAddressReserve && real.cuMemAddressFree && real.cuMemCreate &&
	       real.cuMemRelease && real.cuMemMap && real.cuMemUnmap && real.cuMemSetAccess &&
	       real.cuCtxSynchronize && real.cuCtxGetDevice && real.cuCtxSetCurrent;
}

static CUresult alloc(struct backing *b)
{
	if (real.cuMemAddressReserve(&b->base, b->bytes, 0, 0, 0) != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	uint32_t peers = swap_peers_generation();
	CUresult result = create_and_map(b);
	if (result == CUDA_SUCCESS) {
		if (!real.cuPointerGetAttribute ||
		    real.cuPointerGetAttribute(&b->buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
					       b->base) != CUDA_SUCCESS)
			b->buffer_id = b->base;
		if (insert(b)) {
			/* A peer that was added since `peers` was read has no access yet. */
			CUmemAccessDesc access[ACCESS_MAX];
			if (swap_peers_generation() != peers)
				real.cuMemSetAccess(b->base, b->bytes, access,
						    list_access(b, access));
			return CUDA_SUCCESS;
		}
		unmap_and_release(b);
	}
	real.cuMemAddressFree(b->base, b->bytes);
	return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_ERROR_NOT_SUPPORTED;
}

static bool has_descriptors(CUdevice device, int index)
{
	int known = atomic_load_explicit(&descriptors[index], memory_order_relaxed), value = 0;

	if (!known) {
		known = real.cuDeviceGetAttribute &&
					real.cuDeviceGetAttribute(&value, HAS_DESCRIPTORS,
								  device) == CUDA_SUCCESS &&
					value
				? 2
				: 1;
		atomic_store_explicit(&descriptors[index], (uint8_t)known, memory_order_relaxed);
	}
	return known == 2;
}

static void report_movable_bytes(int index, uint64_t bytes)
{
	atomic_store(&atomic_load(&process_state.slot)->swap[index].movable_bytes, bytes);
}

CUresult swap_backing_alloc(CUdeviceptr *ptr, size_t bytes)
{
	struct backing b = { .asked = bytes, .is_resident = true, .owner = real_current_context() };

	if (!ptr || bytes < SWAP_PAGE || bytes > UINT64_MAX - SWAP_PAGE || !b.owner ||
	    !has_driver() || real.cuCtxGetDevice(&b.device) != CUDA_SUCCESS ||
	    (b.index = process_device_index(b.device)) < 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	b.is_exportable = has_descriptors(b.device, b.index);
	b.bytes = (bytes + SWAP_PAGE - 1) / SWAP_PAGE * SWAP_PAGE;
	/* Add before swap_arena_reserve() uses the sum, so that two concurrent allocations reserve room for both. */
	uint64_t here = atomic_fetch_add(&sums[b.index].movable_bytes, b.bytes) + b.bytes;
	/*
	 * The caller has charged the bytes (charge_begin_on_gpu()), so report them as movable at once. Otherwise the daemon
	 * takes them for memory that cannot move, and may tell waiting tenants that no room will be made.
	 */
	report_movable_bytes(b.index, here);
	CUresult result = swap_arena_reserve(swap_backing_figures(-1).movable_bytes)
				  ? alloc(&b)
				  : CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		*ptr = b.base;
	else
		report_movable_bytes(
			b.index, atomic_fetch_sub(&sums[b.index].movable_bytes, b.bytes) - b.bytes);
	return result;
}

/* cuMemFree waits for the context's work, but the unmapping that replaces cuMemFree does not. */
static CUresult wait_for_work(CUcontext owner)
{
	CUcontext current = real_current_context();

	if (current == owner)
		return real.cuCtxSynchronize();
	real.cuCtxSetCurrent(owner);
	CUresult result = real.cuCtxSynchronize();
	real.cuCtxSetCurrent(current);
	return result;
}

static CUresult give_back(struct backing *b)
{
	CUresult result = b->is_resident ? unmap_and_release(b) : CUDA_SUCCESS;

	/* The daemon's descriptor would keep the memory alive. */
	if (b->key)
		fd_exchange_delete(b->key);
	if (result == CUDA_SUCCESS)
		/* If this fails, only address space is lost. */
		real.cuMemAddressFree(b->base, b->bytes);
	return result;
}

bool swap_backing_free(CUdeviceptr ptr, CUresult *ret_result)
{
	struct backing b;

	if (!swap_backing_find(ptr, &b) || b.base != ptr)
		return false;
	/* No work can use memory that is off the GPU. */
	*ret_result = b.is_resident ? wait_for_work(b.owner) : CUDA_SUCCESS;
	/* The address may be reused at once, so remove from `list` first. */
	if (*ret_result == CUDA_SUCCESS && remove_backing(ptr, &b))
		*ret_result = give_back(&b);
	return true;
}

bool swap_backing_find(CUdeviceptr ptr, struct backing *ret_backing)
{
	WITH_LOCK(&locks.swap_backing);
	const struct backing *b = find(ptr);
	if (b)
		*ret_backing = *b;
	return b;
}

void swap_backing_keep(CUdeviceptr ptr)
{
	WITH_LOCK(&locks.swap_backing);
	struct backing *b = find(ptr);
	if (!b || b->is_kept)
		return;
	b->is_kept = true;
	atomic_fetch_add(&sums[b->index].kept_bytes, b->bytes);
	atomic_fetch_sub(&sums[b->index].movable_bytes, b->bytes);
}

bool swap_backing_set_key(const struct backing *b, uint64_t key)
{
	WITH_LOCK(&locks.swap_backing);
	struct backing *now = find(b->base);
	/* The address may belong to a newer allocation. */
	if (!now || now->base != b->base || now->buffer_id != b->buffer_id)
		return false;
	now->key = key;
	return true;
}

bool swap_backing_has_key(uint64_t key)
{
	WITH_LOCK(&locks.swap_backing);
	for (uint32_t i = 0; i < count; i++)
		if (list[i].key == key)
			return true;
	return false;
}

bool swap_backing_next_with_key(CUdeviceptr ptr, struct backing *ret)
{
	WITH_LOCK(&locks.swap_backing);
	for (uint32_t i = 0; i < count; i++)
		if (list[i].key && list[i].base >= ptr) {
			*ret = list[i];
			return true;
		}
	return false;
}

static CUdeviceptr first_owned(CUcontext context)
{
	WITH_LOCK(&locks.swap_backing);
	for (uint32_t i = 0; i < count; i++)
		if (list[i].owner == context)
			return list[i].base;
	return 0;
}

void swap_backing_context_gone(CUcontext context)
{
	struct backing b;

	/* The context's work has ended with it, so do not wait. */
	for (CUdeviceptr ptr; (ptr = first_owned(context));)
		if (remove_backing(ptr, &b))
			give_back(&b);
}

struct backing_figures swap_backing_figures(int index)
{
	struct backing_figures f = { 0 };

	for (int i = 0; i < REGION_MAX_DEVICES; i++) {
		if (index >= 0 && i != index)
			continue;
		f.movable_bytes += atomic_load(&sums[i].movable_bytes);
		f.out_bytes += atomic_load(&sums[i].out_bytes);
		f.kept_bytes += atomic_load(&sums[i].kept_bytes);
	}
	return f;
}

struct backing *swap_backing_next(uint32_t *at)
{
	return *at < count ? &list[(*at)++] : NULL;
}

/* The first of the context's backings at or after ptr. Another thread may free it before the caller uses the copy. */
static bool next_owned(CUcontext owner, CUdeviceptr ptr, struct backing *ret)
{
	WITH_LOCK(&locks.swap_backing);
	for (uint32_t i = 0; i < count; i++)
		if (list[i].owner == owner && list[i].base >= ptr) {
			*ret = list[i];
			return true;
		}
	return false;
}

void swap_backing_set_peer_access(CUcontext owner, CUdevice peer, bool is_allowed)
{
	CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = peer },
		.flags = is_allowed ? READ_WRITE : 0,
	};
	struct backing b;

	for (CUdeviceptr ptr = 0; next_owned(owner, ptr, &b); ptr = b.base + b.bytes)
		if (b.is_resident && b.device != peer)
			real.cuMemSetAccess(b.base, b.bytes, &access, 1);
}

void swap_backing_reset(void)
{
	if (list)
		munmap(list, capacity * sizeof(*list));
	list = NULL;
	count = capacity = 0;
	for (int i = 0; i < REGION_MAX_DEVICES; i++) {
		atomic_store(&sums[i].movable_bytes, 0);
		atomic_store(&sums[i].kept_bytes, 0);
		atomic_store(&sums[i].out_bytes, 0);
	}
}
