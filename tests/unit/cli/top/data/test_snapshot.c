#include "../lists.h"

static void test_all_there_is(void **state)
{
	cleanup_json json_t *list = list_new(2);
	json_t *tenant = list_add(list, "a", "queued", 1, 29.9);
	cleanup_json json_t *more = json_loads(
		"{\"memory_wait\":{\"waited_s\":6.5,\"place\":2,\"passed\":0},"
		"\"swap\":{\"kind\":\"library\",\"state\":\"out\",\"swapped_bytes\":512,\"failed\":"
		"3,"
		"\"moved_s\":0.5,\"devices\":[{\"index\":1,\"swapped_bytes\":256}]},"
		"\"violations\":2,\"offenders\":[{\"action\":\"reported\"},{\"action\":\"frozen\"}]"
		","
		"\"containers\":[{\"id\":\"0123456789abcdef\",\"name\":\"c\",\"pod\":\"p\","
		"\"namespace\":\"n\"}],\"priority\":-5}",
		0, NULL);
	cleanup_json json_t *tasks = json_loads(
		"{\"containers\":[{\"id\":\"1\",\"name\":\"runs\",\"state\":\"running\"},"
		"{\"id\":\"2\",\"name\":\"still\",\"state\":\"waiting\",\"frozen_s\":12.5}]}",
		0, NULL);
	cleanup_snapshot struct snapshot *snapshot = NULL;
	cleanup_free char *text = NULL;

	json_object_update(tenant, more);
	json_object_set_new(list_device(tenant), "cores_effective_pct", json_real(20));
	json_object_set_new(list_device(tenant), "steps",
			    json_pack("{s:f, s:f, s:f}", "per_second", 80.5, "p50_ms", 12.0,
				      "p99_ms", 31.5));
	json_object_set_new(json_array_get(json_object_get(list, "devices"), 1), "cordoned",
			    json_true());
	text = json_dumps(list, JSON_INDENT(2));
	snapshot = snapshot_make(text, tasks, 5);
	assert_non_null(snapshot);
	assert_int_equal(snapshot->at_ns, 5);
	assert_int_equal(snapshot->card_count, 2);
	assert_string_equal(snapshot->cards[0].trouble, "");
	assert_string_equal(snapshot->cards[1].trouble, "cordoned");
	assert_int_equal(snapshot->tenant_count, 1);
	assert_true(snapshot->tenants[0].is_queued);
	assert_int_equal(snapshot->tenants[0].place, 2);
	assert_string_equal(snapshot->tenants[0].offence, "frozen");
	assert_string_equal(snapshot->tenants[0].container, "n/p/c");
	assert_int_equal(snapshot->tenants[0].priority, -5);
	assert_true(snapshot->tenants[0].swap.is_set);
	assert_int_equal(snapshot->share_count, 1);
	assert_int_equal(snapshot->shares[0].card, 1);
	assert_int_equal(snapshot->shares[0].swapped_bytes, 256);
	assert_true(snapshot->shares[0].guaranteed_pct == 20);
	assert_true(snapshot->shares[0].requested_pct == 30);
	assert_true(snapshot->shares[0].has_steps);
	assert_true(snapshot->shares[0].steps_per_s == 80.5);
	assert_true(snapshot->shares[0].step_p50_ms == 12);
	assert_true(snapshot->shares[0].step_p99_ms == 31.5);
	assert_int_equal(snapshot->frozen_count, 1);
	assert_string_equal(snapshot->frozen[0].name, "still");
}

/* Nothing, and nonsense: what is not understood is not there. */
static void test_nothing(void **state)
{
	static const char *const lists[] = {
		"{}",
		"[]",
		"{\"devices\":3,\"tenants\":{\"a\":1}}",
		"{\"devices\":[1,null],\"tenants\":[2,{\"devices\":5}]}",
		"{\"tenants\":[{\"name\":7,\"devices\":[{\"memory_quota_bytes\":-1}]}]}",
		"",
		"{\"tenants\":[{\"name\":\"a",
		"{\"tenants\":[{\"devices\":[{\"got_1s_pct\":",
	};
	struct snapshot *snapshot = snapshot_make(NULL, NULL, 1);

	assert_non_null(snapshot);
	assert_int_equal(snapshot->card_count + snapshot->share_count, 0);
	snapshot_free(snapshot);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		cleanup_json json_t *tasks = json_loads(lists[i], 0, NULL);

		snapshot = snapshot_make(lists[i], tasks, 1);
		assert_non_null(snapshot);
		for (size_t j = 0; j < snapshot->share_count; j++) {
			assert_false(snapshot->shares[j].has_quota);
			assert_false(snapshot->shares[j].has_got);
		}
		snapshot_free(snapshot);
	}
	assert_null(snapshot_free(NULL));
}

/* A long name is cut between characters. */
static void test_long_name(void **state)
{
	char name[3 * SNAPSHOT_NAME_MAX + 1] = "a";
	cleanup_json json_t *list = list_new(1);
	cleanup_snapshot struct snapshot *snapshot = NULL;

	while (strlen(name) + 2 < sizeof(name))
		strcat(name, "\xc3\xa9");
	list_add(list, name, "idle", 0, 0);
	snapshot = list_look(list, 1, NULL);
	assert_int_equal(strlen(snapshot->tenants[0].name), SNAPSHOT_NAME_MAX - 1);
	assert_memory_equal(snapshot->tenants[0].name, name, SNAPSHOT_NAME_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_there_is),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_long_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
