#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/dra/dra_terms.h"

static int add(const char *fields, struct dra_terms *terms, struct error *err)
{
	json_t *parameters = json_loads(fields, 0, NULL);
	assert_non_null(parameters);
	int r = dra_terms_add(parameters, terms, err);
	json_decref(parameters);
	return r;
}

#define TYPE "\"apiVersion\":\"gpu.allot.dev/v1\",\"kind\":\"GpuTerms\""

static void test_all_fields(void **state)
{
	struct dra_terms terms = { 0 };
	assert_int_equal(add("{" TYPE
			     ",\"coresLimit\":60,\"priority\":-7,\"onFull\":\"wait\",\"sharing\":"
			     "\"space\",\"group\":\"trainers\"}",
			     &terms, NULL),
			 0);
	assert_true(terms.has_cores_limit && terms.cores_limit_pct == 60);
	assert_true(terms.has_priority);
	assert_int_equal(terms.priority, -7);
	assert_string_equal(terms.on_full, "wait");
	assert_string_equal(terms.sharing, "space");
	assert_string_equal(terms.group, "trainers");
}

/* A claim's parameters go before its class's; what they do not say stays. */
static void test_later_goes_before(void **state)
{
	struct dra_terms terms = { 0 };
	assert_int_equal(add("{" TYPE ",\"coresLimit\":\"50%\",\"priority\":1}", &terms, NULL), 0);
	assert_int_equal(add("{" TYPE ",\"priority\":2}", &terms, NULL), 0);
	assert_int_equal(add("{" TYPE "}", &terms, NULL), 0);
	assert_true(terms.cores_limit_pct == 50);
	assert_int_equal(terms.priority, 2);
}

static void test_refused(void **state)
{
	static const char *const rows[][2] = {
		{ "{}", "apiVersion and kind must be gpu.allot.dev/v1 and GpuTerms" },
		{ "[]", "apiVersion and kind must be" },
		{ "{\"apiVersion\":\"gpu.allot.dev/v2\",\"kind\":\"GpuTerms\"}",
		  "not 'gpu.allot.dev/v2'" },
		{ "{" TYPE ",\"memory\":1}", "memory: there is no such field: must be coresLimit" },
		{ "{" TYPE ",\"coresLimit\":0}", "coresLimit: " },
		{ "{" TYPE ",\"coresLimit\":101}", "coresLimit: " },
		{ "{" TYPE ",\"coresLimit\":true}", "coresLimit: must be a percentage" },
		{ "{" TYPE ",\"priority\":101}",
		  "priority: must be a whole number from -100 to 100" },
		{ "{" TYPE ",\"priority\":\"1\"}", "priority: must be a whole number" },
		{ "{" TYPE ",\"onFull\":\"pray\"}", "onFull: 'pray': must be fail, wait or swap" },
		{ "{" TYPE ",\"onFull\":3}", "onFull: '': must be" },
		{ "{" TYPE ",\"sharing\":\"auto\"}", "sharing: " },
		{ "{" TYPE ",\"group\":\"a b\"}", "group: " },
		{ "{" TYPE ",\"group\":null}", "group: " },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dra_terms terms = { .priority = 3 };
		struct error err = { 0 };
		assert_int_equal(add(rows[i][0], &terms, &err), -22);
		if (strncmp(err.text, "GpuTerms: ", 10) != 0 || !strstr(err.text, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], err.text);
		assert_int_equal(terms.priority, 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fields),
		cmocka_unit_test(test_later_goes_before),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
