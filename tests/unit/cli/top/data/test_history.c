#include "../lists.h"

static void set_counters(json_t *tenant, int leases, double waited_s, double used_s)
{
	json_t *device = list_device(tenant);

	json_object_set_new(device, "leases", json_integer(leases));
	json_object_set_new(device, "waited_s", json_real(waited_s));
	json_object_set_new(device, "used_s", json_real(used_s));
}

static void test_rates(void **state)
{
	cleanup_history struct history *history = NULL;
	cleanup_json json_t *list = list_new(1);
	json_t *tenant = list_add(list, "a", "running", 0, 30);
	const struct history_rates *rates;

	assert_int_equal(history_make(&history), 0);
	snapshot_free(list_look(list, 1 * SECOND, history));
	assert_false(history_share_rates(history, 0)->is_set);
	set_counters(tenant, 150, 3, 10.6);
	snapshot_free(list_look(list, 3 * SECOND, history));
	rates = history_share_rates(history, 0);
	assert_true(rates->is_set);
	assert_true(is_near(rates->interval_s, 2, 1e-9));
	assert_true(is_near(rates->leases_per_s, 25, 1e-9));
	assert_true(is_near(rates->waiting, 0.5, 1e-9));
	assert_true(is_near(rates->got_pct, 30, 1e-6));
	/* A daemon that was started again counts from 0: that is no rate. */
	set_counters(tenant, 2, 0, 0.1);
	snapshot_free(list_look(list, 4 * SECOND, history));
	assert_false(history_share_rates(history, 0)->is_set);
	assert_false(history_share_rates(history, 99)->is_set);
}

/* Of a second and more what was charged, of less the daemon's own mean over a second. */
static void test_series(void **state)
{
	cleanup_history struct history *history = NULL;
	cleanup_json json_t *list = list_new(1);
	json_t *tenant = list_add(list, "a", "running", 0, 20);
	const struct history_series *series;

	assert_int_equal(history_make(&history), 0);
	snapshot_free(list_look(list, 1 * SECOND, history));
	set_counters(tenant, 100, 2, 10.5);
	snapshot_free(list_look(list, 2 * SECOND, history));
	set_counters(tenant, 100, 2, 10.9);
	snapshot_free(list_look(list, 2 * SECOND + SECOND / 4, history));
	series = history_share(history, 0);
	assert_int_equal(series->count, 3);
	assert_true(is_near(series->got[0], 0.2F, 1e-6));
	assert_true(is_near(series->got[1], 0.5F, 1e-6));
	assert_true(is_near(series->got[2], 0.2F, 1e-6));
	assert_true(is_near(series->memory[2], 0.25F, 1e-6));
	assert_true(is_near(history_card(history, 0)->got[0], 0.9F, 1e-6));
}

/* The newest stay. */
static void test_full(void **state)
{
	cleanup_history struct history *history = NULL;
	cleanup_json json_t *list = list_new(1);
	json_t *tenant = list_add(list, "a", "running", 0, 0);
	const struct history_series *series;

	assert_int_equal(history_make(&history), 0);
	for (int i = 0; i < HISTORY_LENGTH + 5; i++) {
		json_object_set_new(list_device(tenant), "got_1s_pct", json_real(i / 10.0));
		snapshot_free(list_look(list, SECOND + (uint64_t)i * SECOND / 10, history));
	}
	series = history_share(history, 0);
	assert_int_equal(series->count, HISTORY_LENGTH);
	assert_true(is_near(series->got[HISTORY_LENGTH - 1], (HISTORY_LENGTH + 4) / 1000.0, 1e-5));
	assert_true(is_near(series->got[0], 0.005, 1e-6));
}

/* Each keeps its own, whoever comes, goes or stands elsewhere; who was away begins anew. */
static void test_order_changes(void **state)
{
	cleanup_history struct history *history = NULL;
	cleanup_json json_t *list = list_new(1), *only = list_new(1);
	json_t *tenants = json_object_get(list, "tenants");

	list_add(list, "a", "running", 0, 10);
	list_add(list, "b", "running", 0, 20);
	list_add(list, "c", "running", 0, 30);
	assert_int_equal(history_make(&history), 0);
	snapshot_free(list_look(list, 1 * SECOND, history));
	/* c, a, b */
	json_array_insert(tenants, 0, json_array_get(tenants, 2));
	json_array_remove(tenants, 3);
	snapshot_free(list_look(list, 2 * SECOND, history));
	assert_true(is_near(history_share(history, 0)->got[0], 0.3F, 1e-6));
	assert_true(is_near(history_share(history, 1)->got[0], 0.1F, 1e-6));
	assert_true(is_near(history_share(history, 2)->got[0], 0.2F, 1e-6));
	assert_true(history_share_rates(history, 1)->is_set);
	json_array_append(json_object_get(only, "tenants"), json_array_get(tenants, 2));
	snapshot_free(list_look(only, 3 * SECOND, history));
	assert_int_equal(history_share(history, 0)->count, 3);
	assert_int_equal(history_share(history, 1)->count, 0);
	snapshot_free(list_look(list, 4 * SECOND, history));
	assert_int_equal(history_share(history, 0)->count, 1);
	assert_int_equal(history_share(history, 2)->count, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_order_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
