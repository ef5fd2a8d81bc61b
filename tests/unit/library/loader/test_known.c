/* known.c: the driver's answer for a name, a version and flags, from its table of versions. */
#include "../test.h"

#include "abi/driver_decisions.h"
#include "abi/driver_table.h"
#include "abi/driver_versions.h"
#include "library/loader/known.h"
#include "library/loader/name.h"
#include "library/loader/names.h"

/* ---- stand-ins for real.c: a driver in which a function's address is that of its name ---- */

#define ROW_HOOK(symbol, hook, params, args) #symbol,
#define ROW_WORK(symbol, streams, params, args, ...) #symbol,
static const char *const rows[] = { DRIVER_TABLE(ROW_HOOK, ROW_WORK) };
static const char *lacking = "";
static int newest_of_driver;

static bool is_there(const char *name)
{
#define SINCE(version, symbol) { version, #symbol },
	static const struct {
		int since;
		const char *symbol;
	} all[] = { DRIVER_VERSIONS(SINCE) };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].symbol, name) == 0)
			return all[i].since <= newest_of_driver && strcmp(name, lacking) != 0;
	return false;
}

static void *hook_of_row(size_t row)
{
	assert_true(row < sizeof(rows) / sizeof(rows[0]));
	return is_there(rows[row]) ? (void *)(uintptr_t)rows[row] : NULL;
}

void *elf_symbol_hashed(const struct elf_object *object, const char *name, uint32_t gnu_hash)
{
	assert_int_equal(gnu_hash, name_gnu_hash(name));
	return is_there(name) ? (void *)(uintptr_t)name : NULL;
}

static uint64_t hash(const char *name)
{
	return name_hash(name, strlen(name));
}

static uint64_t base_hash(const char *symbol)
{
	return name_hash(symbol, name_base_length(symbol));
}

/* The function that is returned; "too new"; or "": the driver must be asked. */
static const char *function(const char *name, int version, cuuint64_t flags)
{
	void *found = NULL;

	switch (known_look_up(hash(name), version, flags, &found)) {
	case KNOWN_FOUND: return found;
	case KNOWN_TOO_NEW: return "too new";
	default: return "";
	}
}

/* Its base is somewhere before the names. */
static struct elf_object driver;

static int start(void **state)
{
	driver.base = (uintptr_t)rows - (1U << 30);
	lacking = "";
	newest_of_driver = DRIVER_VERSIONS_NEWEST;
	known_fill(&driver, hook_of_row);
	return 0;
}

static void test_the_newest_that_is_old_enough(void **state)
{
	assert_string_equal(function("cuMemAlloc", 2000, 0), "cuMemAlloc");
	assert_string_equal(function("cuMemAlloc", 3010, 0), "cuMemAlloc");
	assert_string_equal(function("cuMemAlloc", 3020, 0), "cuMemAlloc_v2");
	assert_string_equal(function("cuMemAlloc", 13000, 1), "cuMemAlloc_v2");
	assert_string_equal(function("cuCtxCreate", 12049, 0), "cuCtxCreate_v3");
	assert_string_equal(function("cuCtxCreate", 12050, 0), "cuCtxCreate_v4");
	assert_string_equal(function("cuStreamQuery", 12000, 0), "cuStreamQuery");
}

static void test_twins_are_for_the_per_thread_stream(void **state)
{
	assert_string_equal(function("cuStreamQuery", 12000, 2), "cuStreamQuery_ptsz");
	assert_string_equal(function("cuMemcpyHtoD", 12000, 2), "cuMemcpyHtoD_v2_ptds");
	assert_string_equal(function("cuMemcpyHtoD", 12000, 0), "cuMemcpyHtoD_v2");
	/* Of a name that has any, those alone. */
	assert_string_equal(function("cuStreamQuery", 6050, 2), "too new");
	assert_string_equal(function("cuMemAlloc", 12000, 2), "cuMemAlloc_v2");
}

static void test_answers_only_the_driver_has(void **state)
{
	assert_string_equal(function("cuMemAlloc", 13010, 0), "");
	assert_string_equal(function("cuMemAlloc", 12000, 3), "");
	assert_string_equal(function("cuMemAlloc", -1, 0), "");
	assert_string_equal(function("cuMemAlloc_v2", 12000, 0), "");
	assert_string_equal(function("cuNoSuchFunction", 12000, 0), "");
	assert_string_equal(function("", 12000, 0), "");
	lacking = "cuMemAlloc_v2";
	known_fill(&driver, hook_of_row);
	assert_string_equal(function("cuMemAlloc", 12000, 0), "");
	lacking = "cuStreamQuery_ptsz";
	known_fill(&driver, hook_of_row);
	assert_string_equal(function("cuStreamQuery", 12000, 2), "");
	assert_string_equal(function("cuStreamQuery", 12000, 0), "cuStreamQuery");
}

static void test_too_new(void **state)
{
	assert_string_equal(function("cuMemAlloc", 1000, 0), "too new");
	assert_string_equal(function("cuGreenCtxCreate", 12030, 0), "too new");
	assert_string_equal(function("cuGreenCtxCreate", 12040, 0), "cuGreenCtxCreate");
	/* For a name that this driver lacks, the driver's error differs. */
	lacking = "cuGreenCtxCreate";
	known_fill(&driver, hook_of_row);
	assert_string_equal(function("cuGreenCtxCreate", 12030, 0), "");
}

/* For a driver without anything newer than CUDA 11.8, whose newest forms are of 11.7, no later version is known. */
static void test_no_version_beyond_the_drivers(void **state)
{
	newest_of_driver = 11080;
	known_fill(&driver, hook_of_row);
	assert_string_equal(function("cuMemAlloc", 12000, 0), "");
	assert_string_equal(function("cuMemAlloc", 11070, 0), "cuMemAlloc_v2");
}

/* From the version in the table on, until there is a newer form. */
static void test_each_symbol_of_the_table(void **state)
{
	static const struct {
		int since;
		const char *symbol;
	} all[] = { DRIVER_VERSIONS(SINCE) };

	assert_true(sizeof(all) / sizeof(all[0]) > 600);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool is_twin = strstr(all[i].symbol, "_ptsz") || strstr(all[i].symbol, "_ptds");
		char base[96];
		snprintf(base, sizeof(base), "%.*s", (int)name_base_length(all[i].symbol),
			 all[i].symbol);
		assert_string_equal(function(base, all[i].since, is_twin ? 2 : 0), all[i].symbol);
		assert_string_not_equal(function(base, all[i].since - 10, is_twin ? 2 : 0),
					all[i].symbol);
	}
}

static void test_governed_names(void **state)
{
#define PASSED(reason, base) assert_false(known_is_hooked(hash(#base)));
#define HOOK(symbol, hook, params, args) assert_true(known_is_hooked(base_hash(#symbol)));
#define WORK(symbol, streams, params, args, ...) HOOK(symbol, , , )
	DRIVER_PASSED(PASSED)
	DRIVER_TABLE(HOOK, WORK)
	assert_false(known_is_hooked(hash("cuNoSuchFunction")));
	assert_false(known_is_hooked(hash("cuStreamQuery_v9")));
}

/* forward.c jumps there. */
static void test_passed_functions_of_the_driver(void **state)
{
#define FORWARD(symbol, number) \
	if (is_there(#symbol)) \
		assert_string_equal(known_passed[number], #symbol); \
	else \
		assert_null(known_passed[number]);
	DRIVER_FORWARDS(FORWARD)
	newest_of_driver = 2000;
	known_fill(&driver, hook_of_row);
	DRIVER_FORWARDS(FORWARD)
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_newest_that_is_old_enough, start),
		cmocka_unit_test_setup(test_twins_are_for_the_per_thread_stream, start),
		cmocka_unit_test_setup(test_answers_only_the_driver_has, start),
		cmocka_unit_test_setup(test_too_new, start),
		cmocka_unit_test_setup(test_no_version_beyond_the_drivers, start),
		cmocka_unit_test_setup(test_each_symbol_of_the_table, start),
		cmocka_unit_test_setup(test_governed_names, start),
		cmocka_unit_test_setup(test_passed_functions_of_the_driver, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
