#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon/export/page/history.h"

#define NOW(step) ((uint64_t)(step)*HISTORY_EVERY_NS)

static json_t *written(const struct history *h, uint64_t now_ns)
{
	struct json_text t = { 0 };
	json_text_open(&t, NULL, '{');
	history_write(h, now_ns, &t);
	json_text_close(&t, '}');
	char *text = json_text_end(&t);
	json_t *json = json_loads(text, 0, NULL);
	if (!json)
		fail_msg("%s", text);
	free(text);
	return json;
}

static json_t *row_of(json_t *json, size_t i)
{
	return json_array_get(json_object_get(json, "tenants"), i);
}

static double value_of(json_t *row, const char *key, size_t i)
{
	return json_number_value(json_array_get(json_object_get(row, key), i));
}

static struct history_sample sample(float got, float quota)
{
	return (struct history_sample){ got, 50, got * 10, quota };
}

static void test_nothing(void **state)
{
	struct history *h = history_new();
	json_t *json = written(h, NOW(1));
	assert_int_equal(json_array_size(json_object_get(json, "ages_s")), 0);
	assert_int_equal(json_array_size(json_object_get(json, "tenants")), 0);
	json_decref(json);
	history_free(h);
	history_free(NULL);
}

static void test_values_and_changes(void **state)
{
	struct history *h = history_new();
	for (unsigned i = 1; i <= 4; i++) {
		history_step(h, NOW(i));
		history_add(h, "aaaa", 0, sample((float)i, i < 3 ? 100 : 200));
		if (i != 2)
			history_add(h, "aaaa", 1, sample(7, 1));
	}
	json_t *json = written(h, NOW(4) + NSEC_PER_SEC);
	json_t *ages = json_object_get(json, "ages_s");
	assert_int_equal(json_array_size(ages), 4);
	assert_true(json_number_value(json_array_get(ages, 3)) == 1.0);
	assert_true(json_number_value(json_array_get(ages, 0)) == 16.0);
	json_t *row = row_of(json, 0), *other = row_of(json, 1);
	for (size_t i = 0; i < 4; i++)
		assert_true(value_of(row, "got_1s_pct", i) == (double)(i + 1));
	/* An unchanged value is sent once. */
	json_t *quotas = json_object_get(row, "memory_quota_mib");
	assert_int_equal(json_array_size(quotas), 2);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(quotas, 1), 0)), 2);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(quotas, 1), 1)), 200);
	assert_int_equal(json_array_size(json_object_get(row, "cores_limit_now_pct")), 1);
	assert_int_equal(json_integer_value(json_object_get(other, "index")), 1);
	assert_true(json_is_null(json_array_get(json_object_get(other, "got_1s_pct"), 1)));
	json_decref(json);
	history_free(h);
}

static void test_ten_minutes_and_no_more(void **state)
{
	struct history *h = history_new();
	for (unsigned i = 1; i <= 3 * HISTORY_SAMPLES; i++) {
		history_step(h, NOW(i));
		history_add(h, "stays", 0, sample((float)(i % 100), 1));
		if (i <= HISTORY_SAMPLES)
			history_add(h, "goes", 0, sample(1, 1));
		if (i == HISTORY_SAMPLES + 10) {
			/* It is listed as long as any part of it is there. */
			json_t *json = written(h, NOW(i));
			assert_int_equal(json_array_size(json_object_get(json, "tenants")), 2);
			json_decref(json);
		}
	}
	json_t *json = written(h, NOW(3 * HISTORY_SAMPLES));
	assert_int_equal(json_array_size(json_object_get(json, "ages_s")), HISTORY_SAMPLES);
	assert_int_equal(json_array_size(json_object_get(json, "tenants")), 1);
	json_t *row = row_of(json, 0);
	assert_true(value_of(row, "got_1s_pct", HISTORY_SAMPLES - 1) ==
		    (double)(3 * HISTORY_SAMPLES % 100));
	assert_true(value_of(row, "got_1s_pct", 0) == (double)((2 * HISTORY_SAMPLES + 1) % 100));
	json_decref(json);
	history_free(h);
}

static void test_no_more_than_so_many(void **state)
{
	struct history *h = history_new();
	for (unsigned step = 1; step <= 2; step++) {
		history_step(h, NOW(step));
		for (unsigned i = 0; i < HISTORY_ROWS_MAX + 50; i++) {
			char id[TENANT_ID_MAX];
			snprintf(id, sizeof(id), "%x", i);
			history_add(h, id, 0, sample(1, 1));
		}
	}
	json_t *json = written(h, NOW(2));
	assert_int_equal(json_array_size(json_object_get(json, "tenants")), HISTORY_ROWS_MAX);
	json_decref(json);
	history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_values_and_changes),
		cmocka_unit_test(test_ten_minutes_and_no_more),
		cmocka_unit_test(test_no_more_than_so_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
