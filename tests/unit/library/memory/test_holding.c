/*
 * The allocation hooks, each with a driver whose results the test sets, and a map that may be full: which memory is charged,
 * noted and undone. The map is a fake, because a test can't wait until memory runs out.
 */
#include "../test.h"

#include "../fake_driver.h"
#include "../fake_process.h"
#include "library/entry/hooks.h"
#include "library/memory/holding.h"

#define HANDLE 0x7f0000000000ULL

/* ---- a map of a few places: `noted` is the first, which all but VMM memory use alone ---- */

#define PLACES 4
static struct holding places[PLACES];
#define noted places[0]
static bool map_is_full;

static struct holding *place_of(enum holding_kind kind, uint64_t key)
{
	for (struct holding *p = places; p < places + PLACES; p++)
		if (p->kind == kind && (kind == HOLDING_NONE || p->key == key))
			return p;
	return NULL;
}

bool ptrmap_insert(const struct holding *holding)
{
	struct holding *place = place_of(holding->kind, holding->key);

	if (map_is_full)
		return false;
	if (!place)
		place = place_of(HOLDING_NONE, 0);
	assert_non_null(place);
	*place = *holding;
	return true;
}

bool ptrmap_find(enum holding_kind kind, uint64_t key, struct holding *ret_holding)
{
	const struct holding *place = place_of(kind, key);

	if (place)
		*ret_holding = *place;
	return place;
}

bool ptrmap_remove(enum holding_kind kind, uint64_t key, struct holding *ret_holding)
{
	struct holding *place = place_of(kind, key);

	if (!place)
		return false;
	*ret_holding = *place;
	place->kind = HOLDING_NONE;
	return true;
}

bool ptrmap_update(const struct holding *holding)
{
	return ptrmap_insert(holding);
}

/* With a context: tests/unit/library/memory/test_suballoc.c. */
void ptrmap_remove_owned(uint64_t owner, void (*drop)(const struct holding *, void *), void *context)
{
	fail();
}

/* ---- the driver ---- */

static CUresult driver_result; /* of the call that is hooked */
static uint64_t used_in_call;
static size_t driver_pitch;
static unsigned undone;

static CUresult make(uint64_t *handle)
{
	used_in_call = fake_process_used();
	if (driver_result == CUDA_SUCCESS)
		*handle = HANDLE;
	return driver_result;
}

static CUresult alloc(CUdeviceptr *ptr, size_t bytes)
{
	return make((uint64_t *)ptr);
}

static CUresult alloc_managed(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	return make((uint64_t *)ptr);
}

static CUresult alloc_pitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
			    unsigned int element)
{
	*pitch = driver_pitch;
	return make((uint64_t *)ptr);
}

static CUresult create_array(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	return make((uint64_t *)array);
}

static CUresult create_array3d(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return make((uint64_t *)array);
}

static CUresult create_mipmap(CUmipmappedArray *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *desc,
			      unsigned int levels)
{
	return make((uint64_t *)mipmap);
}

static CUresult create_physical(CUmemGenericAllocationHandle *handle, size_t bytes,
				const CUmemAllocationProp *prop, unsigned long long flags)
{
	return make((uint64_t *)handle);
}

/* Freed memory is no longer noted, but still charged. */
static CUresult end(uint64_t handle)
{
	struct holding h;

	assert_int_equal(handle, HANDLE);
	assert_false(ptrmap_find(HOLDING_MEMORY, handle, &h));
	assert_false(ptrmap_find(HOLDING_ARRAY, handle, &h));
	used_in_call = fake_process_used();
	return driver_result;
}

static CUresult free_memory(CUdeviceptr ptr)
{
	return end(ptr);
}

static CUresult free_async(CUdeviceptr ptr, CUstream stream)
{
	return end(ptr);
}

static CUresult destroy_array(CUarray array)
{
	return end((uint64_t)(uintptr_t)array);
}

static CUresult destroy_mipmap(CUmipmappedArray mipmap)
{
	return end((uint64_t)(uintptr_t)mipmap);
}

static CUresult release_physical(CUmemGenericAllocationHandle handle)
{
	return end(handle);
}

/* A hook also frees memory that it can't note: by the real function, never by the caller's. */
static CUresult undo_memory(CUdeviceptr ptr)
{
	undone += 1;
	return free_memory(ptr);
}

static CUresult undo_array(CUarray array)
{
	undone += 10;
	return destroy_array(array);
}

static CUresult undo_mipmap(CUmipmappedArray mipmap)
{
	undone += 100;
	return destroy_mipmap(mipmap);
}

static CUresult undo_physical(CUmemGenericAllocationHandle handle)
{
	undone += 1000;
	return release_physical(handle);
}

/* ---- one row a hook ---- */

static const CUDA_ARRAY_DESCRIPTOR flat = {
	.Width = 1 << 20,
	.Height = 4,
	.Format = CU_AD_FORMAT_UNSIGNED_INT8,
	.NumChannels = 1,
};
static const CUDA_ARRAY3D_DESCRIPTOR solid = {
	.Width = 1 << 20,
	.Height = 4,
	.Format = CU_AD_FORMAT_UNSIGNED_INT8,
	.NumChannels = 1,
};
static const CUmemAllocationProp on_device = { .location.type = CU_MEM_LOCATION_TYPE_DEVICE };

static CUresult do_alloc(void)
{
	CUdeviceptr ptr;
	return hook_mem_alloc(alloc, &ptr, 4 * MIB);
}

static CUresult do_managed(void)
{
	CUdeviceptr ptr;
	return hook_mem_alloc_managed(alloc_managed, &ptr, 4 * MIB, 1);
}

static CUresult do_pitch(void)
{
	CUdeviceptr ptr;
	size_t pitch;
	return hook_mem_alloc_pitch(alloc_pitch, &ptr, &pitch, 1 * MIB, 4, 4);
}

static CUresult do_array(void)
{
	CUarray array;
	return hook_array_create(create_array, &array, &flat);
}

static CUresult do_array3d(void)
{
	CUarray array;
	return hook_array3d_create(create_array3d, &array, &solid);
}

static CUresult do_mipmap(void)
{
	CUmipmappedArray mipmap;
	return hook_mipmap_create(create_mipmap, &mipmap, &solid, 1);
}

static CUresult do_physical(void)
{
	CUmemGenericAllocationHandle handle;
	return hook_mem_create(create_physical, &handle, 4 * MIB, &on_device, 0);
}

static CUresult end_memory(void)
{
	return hook_mem_free(free_memory, HANDLE);
}

static CUresult end_memory_async(void)
{
	return hook_mem_free_async(free_async, HANDLE, NULL);
}

static CUresult end_array(void)
{
	return hook_array_destroy(destroy_array, (CUarray)(uintptr_t)HANDLE);
}

static CUresult end_mipmap(void)
{
	return hook_mipmap_destroy(destroy_mipmap, (CUmipmappedArray)(uintptr_t)HANDLE);
}

static CUresult end_physical(void)
{
	return hook_mem_release(release_physical, HANDLE);
}

/* Each makes 4 MiB. */
static const struct row {
	const char *name;
	CUresult (*make)(void);
	CUresult (*end)(void);
	enum holding_kind kind;
	unsigned undo; /* amount added to `undone` */
	uint64_t owner, related;
} rows[] = {
	{ "alloc", do_alloc, end_memory, HOLDING_MEMORY, 1, 0xc0, 0 },
	{ "managed", do_managed, end_memory_async, HOLDING_MEMORY, 1, 0xc0, 0 },
	{ "pitch", do_pitch, end_memory, HOLDING_MEMORY, 1, 0xc0, 0 },
	{ "array", do_array, end_array, HOLDING_ARRAY, 10, 0xc0, 0 },
	{ "array3d", do_array3d, end_array, HOLDING_ARRAY, 10, 0xc0, 0 },
	{ "mipmap", do_mipmap, end_mipmap, HOLDING_ARRAY, 100, 0xc0, 0 },
	{ "physical", do_physical, end_physical, HOLDING_PHYSICAL, 1000, 0, 1 },
};

#define EACH_ROW(r) (const struct row *r = rows; r < rows + sizeof(rows) / sizeof(rows[0]); r++)

static void start(const struct row *r)
{
	print_message("%s\n", r->name);
	fake_driver_start();
	fake_process_start(1);
	real.cuMemFree_v2 = undo_memory;
	real.cuArrayDestroy = undo_array;
	real.cuMipmappedArrayDestroy = undo_mipmap;
	real.cuMemRelease = undo_physical;
	memset(places, 0, sizeof(places));
	map_is_full = false;
	driver_result = CUDA_SUCCESS;
	driver_pitch = 1 * MIB;
	used_in_call = UINT64_MAX;
	undone = 0;
}

static uint64_t denials(void)
{
	return atomic_load(&fake_report->slot[0].device[0].denied);
}

/* ---- tests ---- */

static void test_made_and_freed(void **state)
{
	for
		EACH_ROW(r)
		{
			start(r);
			assert_int_equal(r->make(), CUDA_SUCCESS);
			assert_int_equal(used_in_call, 4 * MIB);
			assert_int_equal(fake_process_used(), 4 * MIB);
			assert_int_equal(noted.kind, r->kind);
			if (r->kind != HOLDING_PHYSICAL) /* has a number of its own */
				assert_int_equal(noted.key, HANDLE);
			assert_int_equal(noted.bytes, 4 * MIB);
			assert_int_equal(noted.owner, r->owner);
			assert_int_equal(noted.related, r->related);

			assert_int_equal(r->end(), CUDA_SUCCESS);
			assert_int_equal(used_in_call, 4 * MIB);
			assert_int_equal(fake_process_used(), 0);
			assert_int_equal(noted.kind, HOLDING_NONE);
			assert_int_equal(undone, 0);
		}
}

static void test_refused_by_quota(void **state)
{
	for
		EACH_ROW(r)
		{
			start(r);
			fake_control->device[0].quota_bytes = 4 * MIB - 1;
			assert_int_equal(r->make(), CUDA_ERROR_OUT_OF_MEMORY);
			assert_int_equal(used_in_call, UINT64_MAX); /* the driver was not called */
			assert_int_equal(fake_process_used(), 0);
			assert_int_equal(noted.kind, HOLDING_NONE);
			assert_int_equal(denials(), 1);
		}
}

static void test_driver_fails(void **state)
{
	for
		EACH_ROW(r)
		{
			start(r);
			driver_result = CUDA_ERROR_INVALID_VALUE;
			assert_int_equal(r->make(), CUDA_ERROR_INVALID_VALUE);
			assert_int_equal(used_in_call, 4 * MIB);
			assert_int_equal(fake_process_used(), 0);
			assert_int_equal(noted.kind, HOLDING_NONE);
			assert_int_equal(undone, 0);
		}
}

static void test_no_memory_to_note_it(void **state)
{
	for
		EACH_ROW(r)
		{
			start(r);
			map_is_full = true;
			assert_int_equal(r->make(), CUDA_ERROR_OUT_OF_MEMORY);
			assert_int_equal(undone, r->undo);
			assert_int_equal(used_in_call, 4 * MIB); /* held until it is undone */
			assert_int_equal(fake_process_used(), 0);
		}
}

static void test_free_fails(void **state)
{
	for
		EACH_ROW(r)
		{
			start(r);
			assert_int_equal(r->make(), CUDA_SUCCESS);
			driver_result = CUDA_ERROR_INVALID_VALUE;
			assert_int_equal(r->end(), CUDA_ERROR_INVALID_VALUE);
			assert_int_equal(fake_process_used(), 4 * MIB);
			assert_int_equal(noted.kind, r->kind);
			driver_result = CUDA_SUCCESS;
			assert_int_equal(r->end(), CUDA_SUCCESS);
			assert_int_equal(fake_process_used(), 0);
		}
}

static void test_not_governed(void **state)
{
	for
		EACH_ROW(r)
		{
			start(r);
			atomic_store(&process_state.mode, PROCESS_PLAIN);
			assert_int_equal(r->make(), CUDA_SUCCESS);
			assert_int_equal(fake_process_used(), 0);
			assert_int_equal(noted.kind, HOLDING_NONE);
			assert_int_equal(r->end(), CUDA_SUCCESS);
			driver_result = CUDA_ERROR_INVALID_VALUE;
			assert_int_equal(r->make(), CUDA_ERROR_INVALID_VALUE);
		}
}

/* Reserved for a pitch of 1 MiB; the driver takes more, or less than was reserved. */
static void test_pitch_is_settled(void **state)
{
	start(&rows[2]);
	driver_pitch = 2 * MIB;
	assert_int_equal(do_pitch(), CUDA_SUCCESS);
	assert_int_equal(used_in_call, 4 * MIB);
	assert_int_equal(fake_process_used(), 8 * MIB);
	assert_int_equal(end_memory(), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);

	driver_pitch = 512 * KIB;
	assert_int_equal(do_pitch(), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 2 * MIB);
	assert_int_equal(end_memory(), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

static void test_pitch_beyond_quota_is_undone(void **state)
{
	start(&rows[2]);
	fake_control->device[0].quota_bytes = 6 * MIB;
	driver_pitch = 2 * MIB;
	assert_int_equal(do_pitch(), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(undone, 1);
	assert_int_equal(used_in_call, 4 * MIB);
	assert_int_equal(fake_process_used(), 0);
	assert_int_equal(noted.kind, HOLDING_NONE);
	assert_int_equal(denials(), 1);
}

static void test_array_without_description_is_the_drivers_to_refuse(void **state)
{
	CUmipmappedArray mipmap;
	CUarray array;

	start(&rows[3]);
	driver_result = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(hook_array_create(create_array, &array, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(hook_array3d_create(create_array3d, &array, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(hook_mipmap_create(create_mipmap, &mipmap, NULL, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(used_in_call, 0);
}

static CUresult map(CUdeviceptr ptr, size_t bytes, size_t offset,
		    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr ptr, size_t bytes)
{
	return CUDA_SUCCESS;
}

static CUresult retain_handle(CUmemGenericAllocationHandle *handle, void *addr)
{
	*handle = HANDLE;
	return CUDA_SUCCESS;
}

/* The driver reuses a handle's value while its first memory is still mapped. */
static void test_a_handle_given_out_again_is_other_memory(void **state)
{
	CUmemGenericAllocationHandle handle;

	start(&rows[6]);
	assert_int_equal(do_physical(), CUDA_SUCCESS);
	assert_int_equal(hook_mem_map(map, 0x1000000, 4 * MIB, 0, HANDLE, 0), CUDA_SUCCESS);
	assert_int_equal(end_physical(), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 4 * MIB);
	assert_int_equal(do_physical(), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 8 * MIB);
	assert_int_equal(hook_mem_unmap(unmap, 0x1000000, 4 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 4 * MIB);
	assert_int_equal(end_physical(), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);

	/* Retained by an address: it may have been released before. */
	assert_int_equal(do_physical(), CUDA_SUCCESS);
	assert_int_equal(hook_mem_map(map, 0x1000000, 4 * MIB, 0, HANDLE, 0), CUDA_SUCCESS);
	assert_int_equal(end_physical(), CUDA_SUCCESS);
	assert_int_equal(hook_mem_retain_handle(retain_handle, &handle, (void *)0x1000000),
			 CUDA_SUCCESS);
	assert_int_equal(hook_mem_unmap(unmap, 0x1000000, 4 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 4 * MIB);
	assert_int_equal(end_physical(), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_and_freed),
		cmocka_unit_test(test_refused_by_quota),
		cmocka_unit_test(test_driver_fails),
		cmocka_unit_test(test_no_memory_to_note_it),
		cmocka_unit_test(test_free_fails),
		cmocka_unit_test(test_not_governed),
		cmocka_unit_test(test_pitch_is_settled),
		cmocka_unit_test(test_a_handle_given_out_again_is_other_memory),
		cmocka_unit_test(test_pitch_beyond_quota_is_undone),
		cmocka_unit_test(test_array_without_description_is_the_drivers_to_refuse),
	};

	return cmocka_run_group_tests_name("charge", tests, NULL, NULL);
}
