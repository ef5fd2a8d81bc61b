/*
 * Calls that do not report how much they allocate: measured around the call, charged afterwards, undone if it exceeds the
 * quota, and not refused for memory that other processes allocated meanwhile.
 */
#include "../test.h"

#include "../fake_driver.h"
#include "../fake_process.h"
#include "library/entry/hooks.h"
#include "library/memory/holding.h"
#include "library/memory/measured.h"

#define MODULE ((CUmodule)0x30)
#define QUOTA (100 * MIB)

static size_t card_free, made_bytes, noise_bytes, stack_bytes;
static unsigned loads, unloads;
static bool is_info_absent;

static CUresult get_info(size_t *free_bytes, size_t *total_bytes)
{
	*free_bytes = card_free;
	*total_bytes = 141ULL << 30;
	return is_info_absent ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

/* Takes its memory, and another tenant its own meanwhile, once. */
static CUresult load(CUmodule *module, const void *image)
{
	loads++;
	card_free -= made_bytes + noise_bytes;
	noise_bytes = 0;
	*module = MODULE;
	return CUDA_SUCCESS;
}

static CUresult unload(CUmodule module)
{
	assert_ptr_equal(module, MODULE);
	unloads++;
	card_free += made_bytes;
	return CUDA_SUCCESS;
}

static CUresult get_global(CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name)
{
	CUmodule same;
	return load(&same, name);
}

/* While it loads another thread of the process allocates 30 MiB, charged by its own hook. */
static CUresult load_beside_allocation(CUmodule *module, const void *image)
{
	ledger_reserve(0, 30 * MIB, false);
	card_free -= 30 * MIB;
	return load(module, image);
}

static CUresult fail_to_load(CUmodule *module, const void *image)
{
	return CUDA_ERROR_INVALID_IMAGE;
}

/* 2 processors with 1,024 threads. */
static CUresult get_attribute(int *value, CUdevice_attribute which, CUdevice device)
{
	*value = which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 2 : 1024;
	return CUDA_SUCCESS;
}

static CUresult get_limit(size_t *value, CUlimit limit)
{
	*value = stack_bytes;
	return CUDA_SUCCESS;
}

static CUresult set_limit(CUlimit limit, size_t value)
{
	loads++;
	card_free += (stack_bytes - value) * 2048;
	stack_bytes = value;
	return CUDA_SUCCESS;
}

static int start(void **state)
{
	ptrmap_reset();
	fake_driver_start();
	fake_process_start(1);
	fake_control->device[0].quota_bytes = QUOTA;
	real.cuMemGetInfo_v2 = get_info;
	real.cuModuleUnload = unload;
	real.cuDeviceGetAttribute = get_attribute;
	real.cuCtxGetLimit = get_limit;
	card_free = 100ULL << 30;
	made_bytes = 40 * MIB;
	noise_bytes = 0;
	stack_bytes = 1024;
	loads = unloads = 0;
	is_info_absent = false;
	return 0;
}

static uint64_t fresh(void)
{
	return fake_report->slot[0].device[0].fresh_bytes;
}

static void test_charged(void **state)
{
	CUmodule module;

	assert_int_equal(hook_module_load_data(load, &module, "code"), CUDA_SUCCESS);
	assert_int_equal(fresh(), 40 * MIB);
	assert_int_equal(fake_process_used(), 0);
	assert_int_equal(ledger_used(0), 40 * MIB);
	assert_int_equal(hook_module_unload(unload, module), CUDA_SUCCESS);
	assert_int_equal(ledger_used(0), 0);
}

/* The daemon has made unnamed bytes of it by then. */
static void test_unloaded_after_a_lookup(void **state)
{
	CUmodule module;

	assert_int_equal(hook_module_load_data(load, &module, "code"), CUDA_SUCCESS);
	fake_report->slot[0].device[0].fresh_bytes = 0;
	fake_report->slot[0].device[0].unnamed_bytes = 42 * MIB;
	assert_int_equal(hook_module_unload(unload, module), CUDA_SUCCESS);
	assert_int_equal(ledger_used(0), 2 * MIB);
}

static void test_too_much_is_undone(void **state)
{
	CUmodule module;

	made_bytes = 101 * MIB;
	assert_int_equal(hook_module_load_data(load, &module, "code"), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(loads, 1);
	assert_int_equal(unloads, 1);
	assert_int_equal(ledger_used(0), 0);
	assert_int_equal(fake_report->slot[0].device[0].denied, 1);
}

static void test_what_others_took_is_not_charged(void **state)
{
	CUmodule module;

	noise_bytes = 60ULL << 30;
	assert_int_equal(hook_module_load_data(load, &module, "code"), CUDA_SUCCESS);
	assert_int_equal(loads, 2);
	assert_int_equal(unloads, 1);
	assert_int_equal(ledger_used(0), 40 * MIB);
}

/* Another process took the memory between the two calls. */
static CUresult load_only_once(CUmodule *module, const void *image)
{
	return loads ? CUDA_ERROR_OUT_OF_MEMORY : load(module, image);
}

static void test_a_second_call_that_fails_is_not_charged(void **state)
{
	CUmodule module;

	noise_bytes = 60ULL << 30;
	assert_int_equal(hook_module_load_data(load_only_once, &module, "code"),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(unloads, 1);
	assert_int_equal(ledger_used(0), 0);
}

static void test_what_is_charged_elsewhere_counts_once(void **state)
{
	CUmodule module;

	assert_int_equal(hook_module_load_data(load_beside_allocation, &module, "code"),
			 CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 30 * MIB);
	assert_int_equal(fresh(), 40 * MIB);
}

static void test_for_good(void **state)
{
	made_bytes = 101 * MIB;
	assert_int_equal(hook_module_get_global(get_global, NULL, NULL, MODULE, "name"),
			 CUDA_SUCCESS);
	assert_int_equal(ledger_used(0), 101 * MIB);
}

static void test_nothing_is_measured(void **state)
{
	CUmodule module;

	assert_int_equal(hook_module_load_data(fail_to_load, &module, "?"),
			 CUDA_ERROR_INVALID_IMAGE);
	is_info_absent = true;
	assert_int_equal(hook_module_load_data(load, &module, "code"), CUDA_SUCCESS);
	is_info_absent = false;
	atomic_store(&process_state.captures, 1);
	assert_int_equal(hook_module_load_data(load, &module, "code"), CUDA_SUCCESS);
	atomic_store(&process_state.captures, 0);
	atomic_store(&process_state.mode, PROCESS_PLAIN);
	assert_int_equal(hook_module_load_data(load, &module, "code"), CUDA_SUCCESS);
	atomic_store(&process_state.mode, PROCESS_ACTIVE);
	assert_int_equal(ledger_used(0), 0);
}

static void test_stacks(void **state)
{
	/* 2,048 threads: 20 KiB more are 40 MiB; 60 KiB do not fit, and are not tried. */
	assert_int_equal(hook_ctx_set_limit(set_limit, CU_LIMIT_STACK_SIZE, 21 << 10), CUDA_SUCCESS);
	assert_int_equal(ledger_used(0), 40 * MIB);
	assert_int_equal(hook_ctx_set_limit(set_limit, CU_LIMIT_STACK_SIZE, 61 << 10),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(loads, 1);
	assert_int_equal(hook_ctx_set_limit(set_limit, CU_LIMIT_STACK_SIZE, SIZE_MAX),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(hook_ctx_set_limit(set_limit, CU_LIMIT_STACK_SIZE, 1 << 10), CUDA_SUCCESS);
	assert_int_equal(ledger_used(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_charged, start),
		cmocka_unit_test_setup(test_unloaded_after_a_lookup, start),
		cmocka_unit_test_setup(test_too_much_is_undone, start),
		cmocka_unit_test_setup(test_what_others_took_is_not_charged, start),
		cmocka_unit_test_setup(test_a_second_call_that_fails_is_not_charged, start),
		cmocka_unit_test_setup(test_what_is_charged_elsewhere_counts_once, start),
		cmocka_unit_test_setup(test_for_good, start),
		cmocka_unit_test_setup(test_nothing_is_measured, start),
		cmocka_unit_test_setup(test_stacks, start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
