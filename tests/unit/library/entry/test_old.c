/*
 * Old ABIs and rarely used calls: an old call is charged like its newer form, and refused by the same quota; also the captures
 * and launches of that file.
 */
#include "../test.h"

#include "../fake_driver.h"
#include "../fake_process.h"
#include "library/entry/hooks.h"
#include "library/memory/holding.h"

#define ADDRESS 0x7f000000U

static unsigned calls;
static CUresult driver_result;

static CUresult alloc(CUdeviceptr_v1 *ptr, unsigned int bytes)
{
	calls++;
	*ptr = ADDRESS;
	return driver_result;
}

static CUresult alloc_pitch(CUdeviceptr_v1 *ptr, unsigned int *pitch, unsigned int width,
			    unsigned int height, unsigned int element)
{
	calls++;
	*ptr = ADDRESS;
	*pitch = 2 * MIB;
	return driver_result;
}

static CUresult release(CUdeviceptr_v1 ptr)
{
	assert_int_equal(ptr, ADDRESS);
	calls++;
	return driver_result;
}

static CUresult get_info(size_t *free_bytes, size_t *total_bytes)
{
	*free_bytes = *total_bytes = 141ULL << 30;
	return driver_result;
}

static CUresult get_total(size_t *bytes, CUdevice device)
{
	*bytes = 141ULL << 30;
	return driver_result;
}

static CUresult get_info_v1(unsigned int *free_bytes, unsigned int *total_bytes)
{
	*free_bytes = *total_bytes = 7;
	return driver_result;
}

static CUresult get_total_v1(unsigned int *bytes, CUdevice device)
{
	*bytes = 7;
	return driver_result;
}

static CUresult refuse_info(size_t *free_bytes, size_t *total_bytes)
{
	return CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult refuse_total(size_t *bytes, CUdevice device)
{
	return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult create_array_v1(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
{
	calls++;
	assert_int_equal(desc->Width, 1 << 20);
	*array = (CUarray)0xa0;
	return driver_result;
}

static CUresult create_array3d_v1(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
	calls++;
	assert_int_equal(desc->Depth, 2);
	*array = (CUarray)0xa0;
	return driver_result;
}

static CUresult destroy_array(CUarray array)
{
	return CUDA_SUCCESS;
}

static void start(void)
{
	ptrmap_reset();
	fake_driver_start();
	fake_process_start(1);
	real.cuMemAlloc = alloc;
	real.cuMemAllocPitch = alloc_pitch;
	real.cuMemFree = release;
	real.cuMemGetInfo_v2 = get_info;
	real.cuDeviceTotalMem_v2 = get_total;
	real.cuArrayCreate = create_array_v1;
	real.cuArray3DCreate = create_array3d_v1;
	real.cuArrayDestroy = destroy_array;
	driver_result = CUDA_SUCCESS;
	calls = 0;
}

static void test_memory(void **state)
{
	CUdeviceptr_v1 ptr = 0;
	unsigned int pitch = 0;

	start();
	assert_int_equal(hook_mem_alloc_v1(alloc, &ptr, 3 * MIB), CUDA_SUCCESS);
	assert_int_equal(ptr, ADDRESS);
	assert_int_equal(fake_process_used(), 4 * MIB);
	assert_int_equal(hook_mem_free_v1(release, ptr), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);

	ptr = 0;
	assert_int_equal(hook_mem_alloc_pitch_v1(alloc_pitch, &ptr, &pitch, 1 * MIB, 4, 4),
			 CUDA_SUCCESS);
	assert_int_equal(ptr, ADDRESS);
	assert_int_equal(pitch, 2 * MIB);
	assert_int_equal(fake_process_used(), 8 * MIB);
	assert_int_equal(hook_mem_free_v1(release, ptr), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
	assert_int_equal(calls, 4);
}

static void test_memory_is_refused_or_fails(void **state)
{
	CUdeviceptr_v1 ptr = 1;
	unsigned int pitch = 1;

	start();
	fake_control->device[0].quota_bytes = 4 * MIB - 1;
	assert_int_equal(hook_mem_alloc_v1(alloc, &ptr, 3 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(ptr, 0);
	ptr = 1;
	assert_int_equal(hook_mem_alloc_pitch_v1(alloc_pitch, &ptr, &pitch, 1 * MIB, 4, 4),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(ptr, 0);
	assert_int_equal(pitch, 0);
	assert_int_equal(calls, 0);
	fake_control->device[0].quota_bytes = UINT64_MAX;
	driver_result = CUDA_ERROR_INVALID_CONTEXT;
	ptr = pitch = 1;
	assert_int_equal(hook_mem_alloc_v1(alloc, &ptr, 3 * MIB), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(ptr, 0);
	assert_int_equal(hook_mem_alloc_pitch_v1(alloc_pitch, &ptr, &pitch, 1 * MIB, 4, 4),
			 CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(ptr, 0);
	assert_int_equal(pitch, 0);
	assert_int_equal(fake_process_used(), 0);
}

static void test_the_card_is_the_quota(void **state)
{
	unsigned int free_bytes = 0, total = 0;

	start();
	assert_int_equal(hook_mem_get_info_v1(get_info_v1, &free_bytes, &total), CUDA_SUCCESS);
	assert_int_equal(total, UINT32_MAX);
	fake_control->device[0].quota_bytes = 1024 * MIB;
	assert_int_equal(hook_mem_get_info_v1(get_info_v1, &free_bytes, &total), CUDA_SUCCESS);
	assert_int_equal(total, 1024 * MIB);
	assert_int_equal(free_bytes, 1024 * MIB);
	assert_int_equal(hook_device_total_mem_v1(get_total_v1, &total, 0), CUDA_SUCCESS);
	assert_int_equal(total, 1024 * MIB);
	/* An old call that the driver does not answer is not answered by us. */
	driver_result = CUDA_ERROR_INVALID_CONTEXT;
	assert_int_equal(hook_mem_get_info_v1(get_info_v1, &free_bytes, &total),
			 CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(hook_device_total_mem_v1(get_total_v1, &total, 0),
			 CUDA_ERROR_INVALID_CONTEXT);
	driver_result = CUDA_SUCCESS;
	atomic_store(&process_state.mode, PROCESS_PLAIN);
	assert_int_equal(hook_device_total_mem_v1(get_total_v1, &total, 0), CUDA_SUCCESS);
	assert_int_equal(total, 7);
	assert_int_equal(hook_mem_get_info_v1(get_info_v1, &free_bytes, &total), CUDA_SUCCESS);
	assert_int_equal(free_bytes, 7);
}

/* The driver of 580 has been seen to answer an old call where it refuses the newer one. */
static void test_the_old_call_alone_is_answered(void **state)
{
	unsigned int free_bytes = 0, total = 0;

	start();
	real.cuMemGetInfo_v2 = refuse_info;
	real.cuDeviceTotalMem_v2 = refuse_total;
	assert_int_equal(hook_mem_get_info_v1(get_info_v1, &free_bytes, &total), CUDA_SUCCESS);
	assert_int_equal(free_bytes, 7);
	assert_int_equal(hook_device_total_mem_v1(get_total_v1, &total, 0), CUDA_SUCCESS);
	assert_int_equal(total, 7);
}

static void test_arrays(void **state)
{
	const CUDA_ARRAY_DESCRIPTOR_v1 flat = { 1 << 20, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1 };
	const CUDA_ARRAY3D_DESCRIPTOR_v1 solid = { 1 << 20, 2, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 };
	CUarray array;

	start();
	assert_int_equal(hook_array_create_v1(create_array_v1, &array, &flat), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 4 * MIB);
	assert_int_equal(hook_array_destroy(destroy_array, array), CUDA_SUCCESS);
	assert_int_equal(hook_array3d_create_v1(create_array3d_v1, &array, &solid), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 4 * MIB);
	assert_int_equal(hook_array_destroy(destroy_array, array), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

static CUresult begin_capture(CUstream stream)
{
	assert_int_equal(atomic_load(&process_state.captures), 1);
	return driver_result;
}

static CUresult begin_recapture(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
				CUgraphRecaptureCallback callback, void *data)
{
	return begin_capture(stream);
}

static void test_captures(void **state)
{
	start();
	assert_int_equal(hook_begin_capture_v1(begin_capture, NULL), CUDA_SUCCESS);
	assert_int_equal(atomic_load(&process_state.captures), 1);
	atomic_store(&process_state.captures, 0);
	driver_result = CUDA_ERROR_ILLEGAL_STATE;
	assert_int_equal(hook_begin_capture_v1(begin_capture, NULL), CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(atomic_load(&process_state.captures), 0);
	assert_int_equal(hook_begin_recapture(begin_recapture, NULL, 0, NULL, NULL, NULL),
			 CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(atomic_load(&process_state.captures), 0);
}

static CUresult launch_multi(CUDA_LAUNCH_PARAMS *launches, unsigned int count, unsigned int flags)
{
	calls += count;
	/* Every gate is held, under a lease. */
	assert_int_equal(atomic_load(&fake_report->slot[0].device[0].launching), count);
	return driver_result;
}

static void test_one_launch_on_several_devices(void **state)
{
	CUDA_LAUNCH_PARAMS launches[2] = { { .hStream = fake_stream(2) },
					   { .hStream = fake_stream(3) } };

	start();
	fake_process_set_lease(LEASE_GO);
	assert_int_equal(hook_launch_multi_device(launch_multi, launches, 2, 0), CUDA_SUCCESS);
	assert_int_equal(calls, 2);
	assert_int_equal(atomic_load(&fake_report->slot[0].device[0].launching), 0);
	fake_complete_all();
}

static CUresult attach(CUcontext *context, unsigned int flags)
{
	calls++;
	return CUDA_SUCCESS;
}

static void test_refused_in_a_tenant_alone(void **state)
{
	CUcontext context;

	start();
	assert_int_equal(hook_refuse_ctx_attach(attach, &context, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(calls, 0);
	atomic_store(&process_state.mode, PROCESS_PLAIN);
	assert_int_equal(hook_refuse_ctx_attach(attach, &context, 0), CUDA_SUCCESS);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_is_refused_or_fails),
		cmocka_unit_test(test_the_card_is_the_quota),
		cmocka_unit_test(test_the_old_call_alone_is_answered),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_captures),
		cmocka_unit_test(test_one_launch_on_several_devices),
		cmocka_unit_test(test_refused_in_a_tenant_alone),
	};

	return cmocka_run_group_tests_name("old", tests, NULL, NULL);
}
