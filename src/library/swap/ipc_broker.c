#include "library/swap/ipc_broker.h"

#include <string.h>

#include "library/loader/real.h"
#include "library/memory/fd_tag.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"
#include "library/swap/fd_exchange_client.h"
#include "library/sys/log.h"

#define READ_WRITE 3 /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
#define OPEN_MAX 4096
/* If the daemon lacks a descriptor, ask for one second: it may be a new daemon, which still gets the descriptors. */
#define TAKE_TRIES 20
#define TAKE_EVERY_NS (50 * NS_PER_MS)
#define GIVE_EVERY_NS NS_PER_S

/* A legacy IPC handle that allot makes; its other bytes are zero. No handle of the driver begins with `magic`. */
struct broker_handle {
	char magic[16];
	uint64_t key;
};
static const char magic[16] = "allot shared\0\1\2\3";

struct opened {
	uint64_t key;
	CUdeviceptr ptr;
	uint64_t bytes;
	CUcontext context;
	CUmemGenericAllocationHandle handle;
	uint32_t count;
};

static struct opened *opened; /* OPEN_MAX entries */
static uint32_t opened_count;

static uint64_t given_ns; /* when a new daemon was last given the descriptors */

static CUresult export_to_daemon(const struct backing *b, uint64_t key, int *ret_error)
{
	int fd = -1;
	CUresult result = real.cuMemExportToShareableHandle(
		&fd, b->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

	if (result != CUDA_SUCCESS)
		return result;
	*ret_error = fd_exchange_put(key, b->bytes, fd);
	close(fd);
	return *ret_error ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult ipc_broker_get(const struct backing *b, CUipcMemHandle *ret)
{
	struct broker_handle handle = { .key = b->key ? b->key : fd_tag_new_key() };
	CUresult result = CUDA_SUCCESS;
	int error = 0;

	if (!b->is_exportable || !real.cuMemExportToShareableHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Other processes map the physical memory that is at the address now, and a move would replace it. */
	swap_backing_keep(b->base);
	if (!b->key)
		result = export_to_daemon(b, handle.key, &error);
	if (error)
		log_write("cuIpcGetMemHandle failed: the daemon did not take the descriptor of the "
			  "memory (errno %d); check that allotd runs",
			  -error);
	if (result != CUDA_SUCCESS)
		return result;
	if (!swap_backing_set_key(b, handle.key)) {
		fd_exchange_delete(handle.key);
		return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(handle.magic, magic, sizeof(magic));
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

bool ipc_broker_is_ours(const CUipcMemHandle *handle)
{
	return memcmp(handle, magic, sizeof(magic)) == 0;
}

static struct opened *find(uint64_t key, CUcontext context)
{
	for (uint32_t i = 0; i < opened_count; i++)
		if (opened[i].key == key && opened[i].context == context)
			return &opened[i];
	return NULL;
}

static struct opened *find_at(CUdeviceptr ptr)
{
	for (uint32_t i = 0; i < opened_count; i++)
		if (opened[i].ptr == ptr)
			return &opened[i];
	return NULL;
}

static bool make_room(void)
{
	if (!opened)
		opened = sys_map(NULL, 0, OPEN_MAX * sizeof(*opened));
	return opened && opened_count < OPEN_MAX;
}

static CUresult map(struct opened *o)
{
	CUmemAccessDesc access = { .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
				   .flags = READ_WRITE };
	CUdevice device;
	CUresult result = real.cuCtxGetDevice(&device);

	access.location.id = device;
	if (result == CUDA_SUCCESS)
		result = real.cuMemAddressReserve(&o->ptr, o->bytes, 0, 0, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = swap_backing_map(o->ptr, o->bytes, o->handle, &access, 1);
	if (result != CUDA_SUCCESS)
		real.cuMemAddressFree(o->ptr, o->bytes);
	return result == CUDA_SUCCESS ? result : CUDA_ERROR_MAP_FAILED;
}

static CUresult unmap(const struct opened *o)
{
	CUresult result = real.cuMemUnmap(o->ptr, o->bytes);

	if (result != CUDA_SUCCESS)
		return result;
	real.cuMemRelease(o->handle);
	real.cuMemAddressFree(o->ptr, o->bytes); /* If this fails, only addresses leak. */
	return CUDA_SUCCESS;
}

static int fetch_descriptor(uint64_t key, uint64_t *ret_bytes, int *ret_fd)
{
	int error = -ENOENT;

	for (int i = 0; i < TAKE_TRIES && error == -ENOENT; i++) {
		if (i)
			sys_sleep_ns(TAKE_EVERY_NS);
		error = fd_exchange_get(key, ret_bytes, ret_fd);
	}
	return error;
}

static CUresult import(struct opened *o)
{
	int fd;

	if (!make_room() || !real.cuMemImportFromShareableHandle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (fetch_descriptor(o->key, &o->bytes, &fd))
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = real.cuMemImportFromShareableHandle(
		&o->handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(fd);
	if (result != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_HANDLE;
	result = map(o);
	if (result != CUDA_SUCCESS) {
		real.cuMemRelease(o->handle);
		return result;
	}
	opened[opened_count++] = *o;
	return CUDA_SUCCESS;
}

CUresult ipc_broker_open(const CUipcMemHandle *handle, CUdeviceptr *ret_ptr, bool *ret_again)
{
	struct opened one = { .context = real_current_context(), .count = 1 };
	struct broker_handle given;

	memcpy(&given, handle, sizeof(given));
	one.key = given.key;
	*ret_again = false;
	if (!ret_ptr)
		return CUDA_ERROR_INVALID_VALUE;
	/* As in the driver, a process cannot open its own memory. */
	if (!one.context || swap_backing_has_key(one.key))
		return CUDA_ERROR_INVALID_CONTEXT;
	struct opened *o = find(one.key, one.context);
	if (o) {
		*ret_again = true;
		*ret_ptr = o->ptr;
		o->count++;
		return CUDA_SUCCESS;
	}
	CUresult result = import(&one);
	if (result == CUDA_SUCCESS)
		*ret_ptr = one.ptr;
	return result;
}

bool ipc_broker_close(CUdeviceptr ptr, CUresult *ret_result)
{
	struct opened *o = find_at(ptr);

	if (!o)
		return false;
	*ret_result = CUDA_SUCCESS;
	if (o->count > 1) {
		o->count--;
		return true;
	}
	/* Wait for the context's work, as the driver's own close does. */
	if (real_current_context() == o->context)
		real.cuCtxSynchronize();
	*ret_result = unmap(o);
	if (*ret_result == CUDA_SUCCESS)
		*o = opened[--opened_count];
	return true;
}

void ipc_broker_context_gone(CUcontext context)
{
	for (uint32_t i = opened_count; i-- > 0;)
		if (opened[i].context == context) {
			unmap(&opened[i]);
			opened[i] = opened[--opened_count];
		}
}

bool ipc_broker_republish(uint64_t now_ns)
{
	struct backing b;
	bool is_whole = true;
	int error;

	/* Memory with a key never moves. But while other memory moves, this thread must not call the driver (swap_hold.h). */
	if (now_ns - given_ns < GIVE_EVERY_NS || swap_try_enter() != SWAP_PASSED)
		return false;
	for (CUdeviceptr ptr = 0; swap_backing_next_with_key(ptr, &b); ptr = b.base + b.bytes) {
		CUresult result = export_to_daemon(&b, b.key, &error);
		bool is_there = swap_backing_has_key(b.key);

		/* Another thread may have freed the memory, and deleted its key, before the descriptor was sent. */
		if (result == CUDA_SUCCESS && !is_there)
			fd_exchange_delete(b.key);
		is_whole = is_whole && (result == CUDA_SUCCESS || !is_there);
	}
	swap_leave();
	given_ns = now_ns;
	return is_whole;
}

void ipc_broker_reset(void)
{
	opened_count = 0;
}
