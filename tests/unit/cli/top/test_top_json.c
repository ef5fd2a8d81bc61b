#include "lists.h"

#include "cli/top/top_json.h"

static void test_rates(void **state)
{
	cleanup_history struct history *history = NULL;
	cleanup_json json_t *list = list_new(1);
	cleanup_json json_t *tasks = json_loads("{\"containers\":[{\"id\":\"c\"}]}", 0, NULL);
	cleanup_json json_t *report = NULL;
	json_t *tenant = list_add(list, "a", "running", 0, 30), *device, *rates;

	assert_int_equal(history_make(&history), 0);
	snapshot_free(list_look(list, SECOND, history));
	report = report_make(list, tasks, history);
	device = list_device(json_array_get(json_object_get(report, "tenants"), 0));
	assert_true(json_is_null(json_object_get(device, "rates")));
	assert_true(json_is_true(json_object_get(report, "connected")));
	assert_int_equal(json_array_size(json_object_get(report, "devices")), 1);
	assert_int_equal(json_array_size(json_object_get(report, "containers")), 1);
	json_decref(report);
	json_object_set_new(list_device(tenant), "leases", json_integer(130));
	snapshot_free(list_look(list, 2 * SECOND, history));
	report = report_make(list, NULL, history);
	rates = json_object_get(device, "rates");
	assert_true(json_number_value(json_object_get(rates, "leases_per_s")) == 30);
	assert_true(json_number_value(json_object_get(rates, "interval_s")) == 1);
	/* The list's own figures are there as they were. */
	assert_true(json_number_value(json_object_get(device, "got_1s_pct")) == 30);
}

static void test_no_daemon(void **state)
{
	cleanup_history struct history *history = NULL;
	cleanup_json json_t *report = NULL;
	cleanup_free char *text = NULL;

	assert_int_equal(history_make(&history), 0);
	report = report_make(NULL, NULL, history);
	text = json_dumps(report, JSON_COMPACT);
	assert_string_equal(text, "{\"version\":1,\"connected\":false,\"devices\":[],\"tenants\":[],"
				  "\"containers\":[]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_no_daemon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
