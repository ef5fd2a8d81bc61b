#include "../lists.h"

#include "cli/top/data/key_change.h"

static struct change begin(enum change_kind kind)
{
	cleanup_json json_t *list = list_new(2);
	cleanup_snapshot struct snapshot *snapshot = NULL;
	struct change change;

	list_add(list, "web", "running", 1, 10);
	snapshot = list_look(list, 1, NULL);
	change_begin(kind, snapshot, 0, &change);
	return change;
}

static void expect_request(const struct change *change, const char *op, const char *wanted)
{
	const char *asked;
	cleanup_json json_t *body = change_request(change, &asked);
	cleanup_free char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);

	assert_string_equal(asked, op);
	assert_string_equal(text, wanted);
}

static void expect_description(const struct change *change, const char *wanted)
{
	char text[CHANGE_TEXT_MAX];

	change_describe(change, text);
	assert_string_equal(text, wanted);
}

static void test_pause(void **state)
{
	struct change change = begin(CHANGE_PAUSE);

	assert_false(change_wants_value(&change));
	expect_description(&change, "pause web");
	expect_request(&change, "pause", "{\"name\":\"id0\"}");
	change = begin(CHANGE_SWAP_OUT);
	expect_description(&change, "pause and swap out web");
	expect_request(&change, "pause", "{\"name\":\"id0\",\"swap_out\":true}");
	change = begin(CHANGE_RESUME);
	expect_request(&change, "resume", "{\"name\":\"id0\"}");
}

static void test_memory(void **state)
{
	struct change change = begin(CHANGE_MEMORY);
	struct error err = { 0 };
	char text[CHANGE_TEXT_MAX];

	assert_true(change_wants_value(&change));
	change_ask(&change, text);
	assert_string_equal(text, "memory of web on GPU 1 is 4.0 GiB; write for example 6GiB");
	assert_int_equal(change_read(&change, "6", &err), -EINVAL);
	assert_non_null(strstr(err.text, "'6'"));
	assert_int_equal(change_read(&change, "6GiB", &err), 0);
	expect_description(&change, "set memory of web on GPU 1 to 6.0 GiB, now 4.0 GiB");
	expect_request(&change, "set",
		       "{\"devices\":[{\"index\":1,\"memory_bytes\":6442450944}],\"name\":\"id0\"}");
}

static void test_shares(void **state)
{
	struct change change = begin(CHANGE_CORES);
	struct error err = { 0 };

	assert_int_equal(change_read(&change, "101", &err), -EINVAL);
	assert_int_equal(change_read(&change, "25", &err), 0);
	expect_description(&change, "set cores of web on GPU 1 to 25 %, now 30 %");
	expect_request(&change, "set",
		       "{\"devices\":[{\"cores_pct\":25.0,\"index\":1}],\"name\":\"id0\"}");
	change = begin(CHANGE_CORES_LIMIT);
	assert_int_equal(change_read(&change, "80", &err), 0);
	expect_request(&change, "set",
		       "{\"devices\":[{\"cores_limit_pct\":80.0,\"index\":1}],\"name\":\"id0\"}");
}

static void test_priority(void **state)
{
	struct change change = begin(CHANGE_PRIORITY);
	struct error err = { 0 };

	assert_true(change_read(&change, "101", &err) < 0);
	assert_true(change_read(&change, "ten", &err) < 0);
	assert_int_equal(change_read(&change, "-7", &err), 0);
	expect_description(&change, "set priority of web to -7, now 0");
	expect_request(&change, "set", "{\"name\":\"id0\",\"priority\":-7}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_priority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
