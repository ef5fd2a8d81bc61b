#include "lists.h"

#include "cli/top/sort_shares.h"

struct scene {
	json_t *list;
	struct history *history;
	struct snapshot *snapshot;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	json_t *tenant;

	scene->list = list_new(2);
	assert_int_equal(history_make(&scene->history), 0);
	list_add(scene->list, "beta", "running", 1, 10);
	list_add(scene->list, "Alpha", "paused", 0, 50);
	tenant = list_add(scene->list, "gamma", "queued", 0, 30);
	json_object_set_new(tenant, "memory_wait",
			    json_pack("{s:f, s:i}", "waited_s", 6.0, "place", 1));
	json_object_set_new(list_device(tenant), "memory_used_bytes", json_integer(3 * GIB));
	json_object_set_new(tenant, "containers",
			    json_pack("[{s:s, s:s}]", "id", "x", "name", "Web"));
	scene->snapshot = list_look(scene->list, SECOND, scene->history);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	snapshot_free(scene->snapshot);
	history_free(scene->history);
	json_decref(scene->list);
	free(scene);
	return 0;
}

/* The names in order, each with a blank behind it. */
static void expect(const struct scene *scene, enum order_key key, bool is_reversed,
		   const char *filter, const char *wanted)
{
	struct rows rows = { 0 };
	char text[256] = "";

	assert_int_equal(
		order_make(scene->snapshot, scene->history, key, is_reversed, filter, &rows), 0);
	for (size_t i = 0; i < rows.count; i++) {
		strcat(text,
		       scene->snapshot->tenants[scene->snapshot->shares[rows.share[i]].tenant].name);
		strcat(text, " ");
	}
	order_free(&rows);
	assert_string_equal(text, wanted);
}

static void test_keys(void **state)
{
	expect(*state, ORDER_NAME, false, "", "Alpha beta gamma ");
	expect(*state, ORDER_NAME, true, "", "gamma beta Alpha ");
	expect(*state, ORDER_CARD, false, "", "Alpha gamma beta ");
	expect(*state, ORDER_STATE, false, "", "Alpha gamma beta ");
	expect(*state, ORDER_COMPUTE, false, "", "Alpha gamma beta ");
	expect(*state, ORDER_COMPUTE, true, "", "beta gamma Alpha ");
	expect(*state, ORDER_MEMORY, false, "", "gamma Alpha beta ");
	expect(*state, ORDER_WAIT, false, "", "gamma Alpha beta ");
	/* There are no rates yet: all are equal. */
	expect(*state, ORDER_LEASES, false, "", "Alpha beta gamma ");
}

static void test_filter(void **state)
{
	expect(*state, ORDER_NAME, false, "ALP", "Alpha ");
	expect(*state, ORDER_NAME, false, "queue", "gamma ");
	expect(*state, ORDER_NAME, false, "web", "gamma ");
	expect(*state, ORDER_NAME, false, "gpu1", "beta ");
	expect(*state, ORDER_NAME, false, "nobody", "");
}

static void test_position(void **state)
{
	const struct scene *scene = *state;
	struct rows rows = { 0 };

	assert_int_equal(order_make(scene->snapshot, scene->history, ORDER_NAME, false, "", &rows),
			 0);
	assert_int_equal(order_position(&rows, scene->snapshot, "id2", 0), 2);
	assert_int_equal(order_position(&rows, scene->snapshot, "id2", 1), rows.count);
	assert_int_equal(order_position(&rows, scene->snapshot, "", 0), rows.count);
	order_free(&rows);
}

static void test_find(void **state)
{
	for (enum order_key key = 0; key < ORDER_COUNT; key++)
		assert_int_equal(order_find(order_rows[key].name), key);
	assert_int_equal(order_find("nothing"), ORDER_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_keys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_filter, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_position, set_up, tear_down),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
