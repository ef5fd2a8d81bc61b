/* Driver entries without a row in the table: which count as a form of a name, and the policy for them. */
#include "../test.h"

#include "library/loader/name.h"
#include "library/loader/unknown.h"
#include "library/sys/config.h"
#include "abi/cuda_abi.h"

static const char *tenant_socket;
static bool passes;

const char *config_socket(void)
{
	return tenant_socket;
}

bool config_passes_unknown(void)
{
	return passes;
}

static void test_forms_of_a_name(void **state)
{
	static const char *const forms[][2] = {
		{ "cuMemAlloc", "cuMemAlloc" },
		{ "cuMemAlloc_v2", "cuMemAlloc" },
		{ "cuMemAlloc_v12", "cuMemAlloc" },
		{ "cuMemcpy_ptds", "cuMemcpy" },
		{ "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD" },
		{ "cuLaunchKernel_ptsz", "cuLaunchKernel" },
		{ "cuMem_verb", "cuMem_verb" },
		{ "cuMemcpy_ptdsx", "cuMemcpy_ptdsx" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		assert_int_equal(name_base_length(forms[i][0]), strlen(forms[i][1]));
}

static void test_policy(void **state)
{
	static char entry[3];

	tenant_socket = "";
	assert_false(unknown_is_refused("cuMemAlloc_v9"));
	assert_null(unknown_note("cuMemAlloc_v9", &entry[0]));
	tenant_socket = "/run/allot.sock";
	passes = true;
	assert_false(unknown_is_refused("cuMemAlloc_v9"));
	assert_null(unknown_note("cuMemAlloc_v9", &entry[0]));
	assert_null(unknown_stand_in(&entry[0]));
	passes = false;
	assert_true(unknown_is_refused("cuMemAlloc_v9"));
	CUresult (*stand_in)(void) = (CUresult(*)(void))unknown_note("cuMemAlloc_v9", &entry[0]);
	assert_int_equal(stand_in(), CUDA_ERROR_NOT_FOUND);
	assert_ptr_equal(unknown_note("cuMemAlloc_v9", &entry[0]), stand_in);
	assert_ptr_equal(unknown_stand_in(&entry[0]), stand_in);
	assert_null(unknown_stand_in(&entry[1]));
	assert_non_null(unknown_note("cuMemFree_v9", &entry[1]));
	assert_ptr_equal(unknown_stand_in(&entry[1]), stand_in);
	assert_null(unknown_stand_in(&entry[2]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms_of_a_name),
		cmocka_unit_test(test_policy),
	};

	return cmocka_run_group_tests_name("unknown", tests, NULL, NULL);
}
