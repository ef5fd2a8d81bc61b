/* Handles whose memory comes from the daemon: opened, counted and closed. */
#include "../test.h"

#include <errno.h>
#include <fcntl.h>

#include "../fake_driver.h"
#include "../fake_process.h"
#include "library/memory/fd_tag.h"
#include "library/swap/ipc_broker.h"
#include "library/swap/fd_exchange_client.h"

#define PTR 0x200000
#define BYTES (2 << 20)

static unsigned maps, unmaps, releases, frees;
static CUresult free_result;

/* The memory that has a key. */
static struct backing shared;
static bool is_freed; /* while it was given */
static int give_error;
static unsigned gives;

/* ---- stand-ins for the rest of the library, and the daemon ---- */

void swap_backing_keep(CUdeviceptr ptr)
{
}

bool swap_backing_set_key(const struct backing *b, uint64_t key)
{
	return !is_freed;
}

bool swap_backing_has_key(uint64_t key)
{
	return shared.key && key == shared.key && !is_freed;
}

bool swap_backing_next_with_key(CUdeviceptr ptr, struct backing *ret)
{
	*ret = shared;
	return shared.key && !is_freed && shared.base >= ptr;
}

CUresult swap_backing_map(CUdeviceptr base, uint64_t bytes, CUmemGenericAllocationHandle handle,
			  const CUmemAccessDesc *access, size_t n)
{
	maps++;
	return CUDA_SUCCESS;
}

uint64_t fd_tag_new_key(void)
{
	return 7;
}

int fd_exchange_put(uint64_t key, uint64_t bytes, int fd)
{
	gives++;
	return give_error;
}

int fd_exchange_get(uint64_t key, uint64_t *ret_bytes, int *ret_fd)
{
	*ret_bytes = BYTES;
	*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

/* ---- the driver ---- */

static CUresult export(void *fd, CUmemGenericAllocationHandle handle,
		       CUmemAllocationHandleType type, unsigned long long flags)
{
	*(int *)fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return CUDA_SUCCESS;
}

static CUresult import(CUmemGenericAllocationHandle *handle, void *fd,
		       CUmemAllocationHandleType type)
{
	*handle = 9;
	return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *ptr, size_t bytes, size_t alignment, CUdeviceptr wanted,
			unsigned long long flags)
{
	*ptr = PTR;
	return CUDA_SUCCESS;
}

static CUresult free_address(CUdeviceptr ptr, size_t bytes)
{
	frees++;
	return free_result;
}

/* Of memory that is not mapped, as the driver has it. */
static CUresult unmap(CUdeviceptr ptr, size_t bytes)
{
	return unmaps++ < maps ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	releases++;
	return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
	return CUDA_SUCCESS;
}

static int start(void **state)
{
	fake_driver_start();
	fake_process_start(1);
	ipc_broker_reset();
	real.cuMemExportToShareableHandle = export;
	real.cuMemImportFromShareableHandle = import;
	real.cuMemAddressReserve = reserve;
	real.cuMemAddressFree = free_address;
	real.cuMemUnmap = unmap;
	real.cuMemRelease = release;
	real.cuCtxSynchronize = synchronize;
	maps = unmaps = releases = frees = gives = 0;
	shared = (struct backing){ 0 };
	is_freed = false;
	give_error = 0;
	fake_dropped_key = 0;
	free_result = CUDA_SUCCESS;
	return 0;
}

static void open_one(bool is_again)
{
	const struct backing b = { .is_exportable = true, .bytes = BYTES };
	CUipcMemHandle handle;
	CUdeviceptr ptr = 0;
	bool again;

	assert_int_equal(ipc_broker_get(&b, &handle), CUDA_SUCCESS);
	assert_true(ipc_broker_is_ours(&handle));
	assert_int_equal(ipc_broker_open(&handle, &ptr, &again), CUDA_SUCCESS);
	assert_int_equal(again, is_again);
	assert_int_equal(ptr, PTR);
}

static void test_the_last_close_unmaps(void **state)
{
	CUresult result = CUDA_ERROR_UNKNOWN;

	open_one(false);
	open_one(true);
	assert_true(ipc_broker_close(PTR, &result));
	assert_int_equal(unmaps, 0);
	assert_true(ipc_broker_close(PTR, &result));
	assert_int_equal(result, CUDA_SUCCESS);
	assert_int_equal(unmaps, 1);
	assert_int_equal(releases, 1);
	assert_int_equal(frees, 1);
	assert_false(ipc_broker_close(PTR, &result));
}

/* The memory is closed all the same. Opened again, it must be mapped again. */
static void test_an_address_that_stays_reserved(void **state)
{
	CUresult result = CUDA_ERROR_UNKNOWN;

	free_result = CUDA_ERROR_INVALID_VALUE;
	open_one(false);
	assert_true(ipc_broker_close(PTR, &result));
	assert_int_equal(result, CUDA_SUCCESS);
	assert_false(ipc_broker_close(PTR, &result));
	open_one(false);
	assert_int_equal(maps, 2);
}

static CUresult export_what_is_freed(void *fd, CUmemGenericAllocationHandle handle,
				     CUmemAllocationHandleType type, unsigned long long flags)
{
	is_freed = true;
	return export(fd, handle, type, flags);
}

static void test_what_a_new_daemon_did_not_get(void **state)
{
	uint64_t now_ns = sys_now_ns();

	shared = (struct backing){ .base = PTR, .bytes = BYTES, .key = 5 };
	give_error = -ECONNREFUSED;
	assert_false(ipc_broker_republish(now_ns));
	assert_int_equal(gives, 1);
	/* Not at each poll. */
	give_error = 0;
	assert_false(ipc_broker_republish(now_ns + NS_PER_MS));
	assert_int_equal(gives, 1);
	assert_true(ipc_broker_republish(now_ns + 2 * NS_PER_S));
	assert_int_equal(gives, 2);
	assert_int_equal(fake_dropped_key, 0);
	/* Memory that is freed meanwhile: the daemon must not keep it. */
	real.cuMemExportToShareableHandle = export_what_is_freed;
	assert_true(ipc_broker_republish(now_ns + 4 * NS_PER_S));
	assert_int_equal(fake_dropped_key, 5);
	assert_true(ipc_broker_republish(now_ns + 6 * NS_PER_S));
	assert_int_equal(gives, 3);
}

/* Another thread may free the memory while it is shared. The daemon's descriptor would keep it on the GPU. */
static void test_memory_freed_while_shared(void **state)
{
	const struct backing b = { .is_exportable = true, .bytes = BYTES };
	CUipcMemHandle handle;

	real.cuMemExportToShareableHandle = export_what_is_freed;
	assert_int_equal(ipc_broker_get(&b, &handle), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gives, 1);
	assert_int_equal(fake_dropped_key, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_last_close_unmaps, start),
		cmocka_unit_test_setup(test_an_address_that_stays_reserved, start),
		cmocka_unit_test_setup(test_what_a_new_daemon_did_not_get, start),
		cmocka_unit_test_setup(test_memory_freed_while_shared, start),
	};

	return cmocka_run_group_tests_name("ipc_broker", tests, NULL, NULL);
}
