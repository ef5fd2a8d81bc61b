/* Handles whose memory comes from the daemon: opened, counted and closed. */
#include "../test.h"

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

/* ---- the rest of the library, and the daemon ---- */

void swap_backing_keep(CUdeviceptr ptr)
{
}

void swap_backing_set_key(CUdeviceptr ptr, uint64_t key)
{
}

bool swap_backing_has_key(uint64_t key)
{
	return false;
}

bool swap_backing_next_with_key(CUdeviceptr ptr, struct backing *ret)
{
	return false;
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

int sharing_give(uint64_t key, uint64_t bytes, int fd)
{
	return 0;
}

int sharing_take(uint64_t key, uint64_t *ret_bytes, int *ret_fd)
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
	maps = unmaps = releases = frees = 0;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_last_close_unmaps, start),
		cmocka_unit_test_setup(test_an_address_that_stays_reserved, start),
	};

	return cmocka_run_group_tests_name("ipc_broker", tests, NULL, NULL);
}
