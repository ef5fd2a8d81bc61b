#include "test.h"

#include "cli/selection.h"

static json_t *three(void)
{
	return json_pack("[{s:i,s:s,s:s},{s:i,s:s,s:s},{s:i,s:s,s:s}]", "index", 0, "uuid",
			 "GPU-aa-0", "name", "A", "index", 1, "uuid", "GPU-aa-1", "name", "B",
			 "index", 2, "uuid", "GPU-bb-2", "name", "C");
}

/* The indexes chosen, as text: "1,0"; "error" when refused. */
static void check(const char *visible, const char *wanted, const char *expected)
{
	json_t *devices = three();
	struct parse_devices list;
	struct selection selection;
	struct error err = { 0 };
	char text[64] = "";
	int r;

	if (wanted)
		assert_int_equal(parse_devices(wanted, &list, NULL), 0);
	r = selection_make(devices, visible, wanted ? &list : NULL, &selection, &err);
	for (size_t i = 0; r == 0 && i < selection.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i ? "," : "",
			 (int)device_index(selection.device[i]));
	assert_string_equal(r < 0 ? "error" : text, expected);
	if (r < 0)
		assert_true(strlen(err.text) > 10);
	json_decref(devices);
}

static void test_without_visible(void **state)
{
	check(NULL, NULL, "0");
	check(NULL, "all", "0,1,2");
	check(NULL, "2,0", "2,0");
	check(NULL, "GPU-aa-1", "1");
}

static void test_within_visible(void **state)
{
	check("2,1", NULL, "2");
	check("2,1", "all", "2,1");
	check("2,1", "1", "1");
	check("2,1", "2", "error");
	check("2,1", "GPU-aa-0", "error");
	check("GPU-bb", "0", "2");
	check("GPU-aa", NULL, "error"); /* begins two UUIDs */
	check("GPU-aa-1,GPU-aa-0", "all", "1,0");
	check(" 1 , 0", "all", "1,0");
	check("1,9,0", "all", "1"); /* CUDA stops at the first that is not there */
	check("", NULL, "error");
	check("-1", NULL, "error");
	check("NoDevFiles", NULL, "error");
}

/* In either case, whole or its beginning, for the option as for the variable. */
static void test_forms_of_a_uuid(void **state)
{
	static const char *const forms[] = { "GPU-bb-2", "GPU-BB-2", "gpu-bb-2", "GPU-b", "GPU-B" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		check(NULL, forms[i], "2");
		check(forms[i], NULL, "2");
		check(forms[i], forms[i], "2");
	}
	check(NULL, "GPU-AA", "error"); /* begins two UUIDs */
	check("GPU-AA", NULL, "error");
	check(NULL, "GPU-cc", "error");
}

static void test_same_twice(void **state)
{
	check(NULL, "0,GPU-aa-0", "error");
	check(NULL, "GPU-bb,GPU-BB-2", "error");
}

static void test_refusal_lists(void **state)
{
	json_t *devices = three();
	struct parse_devices list;
	struct selection selection;
	struct error err;

	assert_int_equal(parse_devices("7", &list, NULL), 0);
	assert_int_equal(selection_make(devices, NULL, &list, &selection, &err), -ENODEV);
	assert_string_equal(err.text, "--gpu: '7': no such GPU; available: 0 (A, GPU-aa-0), "
				      "1 (B, GPU-aa-1), 2 (C, GPU-bb-2)");
	json_decref(devices);
	assert_int_equal(selection_make(NULL, NULL, &list, &selection, &err), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_visible), cmocka_unit_test(test_within_visible),
		cmocka_unit_test(test_forms_of_a_uuid), cmocka_unit_test(test_same_twice),
		cmocka_unit_test(test_refusal_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
