#include "../../test.h"

#include "base/cleanup.h"
#include "client/client.h"
#include "cli/top/data/reader.h"

static void expect_text(struct span value, const char *wanted)
{
	char text[64];

	reader_text(value, text, sizeof(text));
	assert_string_equal(text, wanted);
}

static void test_members(void **state)
{
	struct span object = reader_whole(
		" { \"a\" : 1 ,\"b\":[1, {\"c\":\"]\\\"}\"}],\n\"d\":null}\n");
	struct span rest = object, key, value;

	assert_true(reader_member(&rest, &key, &value));
	assert_true(reader_is_key(key, "a") && reader_is(value, "1"));
	assert_true(reader_member(&rest, &key, &value));
	assert_true(reader_is_key(key, "b") && reader_is(value, "[1, {\"c\":\"]\\\"}\"}]"));
	assert_false(reader_is_key(key, "bb") || reader_is_key(key, ""));
	assert_true(reader_member(&rest, &key, &value));
	assert_true(reader_is(value, "null"));
	assert_false(reader_member(&rest, &key, &value));
	assert_false(reader_member(&rest, &key, &value));
	rest = reader_find(object, "b");
	assert_true(reader_element(&rest, &value) && reader_is(value, "1"));
	assert_true(reader_element(&rest, &value));
	expect_text(reader_find(value, "c"), "]\"}");
	assert_false(reader_element(&rest, &value));
	value = reader_find(object, "none");
	assert_ptr_equal(value.at, value.end);
	expect_text(value, "");
}

static void test_nothing_in_it(void **state)
{
	static const char *const empty[] = { "",    "  ", "{}",    "[]",  "{ }",
					     "[ ]", "7",  "\"a\"", "null" };
	struct span key, value;

	for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++) {
		struct span rest = reader_whole(empty[i]);

		assert_false(reader_member(&rest, &key, &value));
		rest = reader_whole(empty[i]);
		assert_false(reader_element(&rest, &value));
	}
}

static void test_numbers(void **state)
{
	struct span list = reader_whole(
		"[12, -3.5e1, 1.0, \"7\", 99999999999999999999, 0x10, -, -inf, 1e999]");
	struct span value;
	double number;
	int64_t whole;

	assert_true(reader_element(&list, &value) && reader_number(value, &number) && number == 12);
	assert_true(reader_whole_number(value, &whole) && whole == 12);
	assert_true(reader_element(&list, &value) && reader_number(value, &number) && number == -35);
	assert_false(reader_whole_number(value, &whole));
	assert_true(reader_element(&list, &value) && !reader_whole_number(value, &whole));
	assert_true(reader_element(&list, &value) && !reader_number(value, &number));
	assert_true(reader_element(&list, &value) && reader_whole_number(value, &whole));
	assert_true(whole == INT64_MAX);
	assert_true(reader_element(&list, &value) && !reader_whole_number(value, &whole));
	for (int i = 0; i < 3; i++)
		assert_true(reader_element(&list, &value) && !reader_number(value, &number));
	assert_false(reader_element(&list, &value));
}

static void test_texts(void **state)
{
	char text[4];

	expect_text(reader_whole("\"plain\""), "plain");
	expect_text(reader_whole("\"\""), "");
	expect_text(reader_whole("\"a\\u00e9\\n\""),
		    "a\xc3\xa9");                  /* no control character gets through */
	expect_text(reader_whole("\"a\\x\""), ""); /* no JSON */
	expect_text(reader_whole("12"), "");
	reader_text(reader_whole("\"ab\xc3\xa9\""), text, sizeof(text));
	assert_string_equal(text, "ab"); /* never half a character */
}

/*
 * Every text that ends early, and many with a byte changed: what is found lies inside, and of what jansson takes as
 * JSON the same members are found.
 */
static void walk(struct span value, const char *begin, const char *end, int depth)
{
	struct span rest = value, key, inner;
	char text[32];
	double number;

	assert_true(value.at >= begin && value.end <= end && value.at <= value.end);
	reader_text(value, text, sizeof(text));
	reader_number(value, &number);
	if (depth > 20)
		return;
	while (reader_member(&rest, &key, &inner))
		walk(inner, begin, end, depth + 1);
	rest = value;
	while (reader_element(&rest, &inner))
		walk(inner, begin, end, depth + 1);
}

static size_t count_members(struct span value)
{
	struct span key, inner;
	size_t count = 0;

	while (reader_member(&value, &key, &inner))
		count++;
	return count;
}

static void test_broken(void **state)
{
	static const char whole[] =
		"{\"a\":[1,{\"b\":\"c\\\"d\"},[]],\"e\":{\"f\":-1.5e3,\"g\":true},\"h\":null}";
	char text[sizeof(whole)];

	for (size_t i = 0; i < sizeof(whole); i++) {
		memcpy(text, whole, i);
		text[i] = '\0';
		walk(reader_whole(text), text, text + i, 0);
	}
	for (size_t i = 0; i + 1 < sizeof(whole); i++)
		for (int c = 1; c < 256; c++) {
			cleanup_json json_t *tree = NULL;

			memcpy(text, whole, sizeof(whole));
			text[i] = (char)c;
			walk(reader_whole(text), text, text + sizeof(whole) - 1, 0);
			tree = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
			if (tree)
				assert_int_equal(count_members(reader_whole(text)),
						 json_object_size(tree));
		}
}

static void test_tree(void **state)
{
	cleanup_json json_t *tree = reader_tree(
		reader_find(reader_whole("{\"a\":[1,2],\"b\":3}"), "a"));

	assert_int_equal(json_array_size(tree), 2);
	assert_null(reader_tree(reader_whole("{")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members), cmocka_unit_test(test_nothing_in_it),
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_texts),
		cmocka_unit_test(test_broken),  cmocka_unit_test(test_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
