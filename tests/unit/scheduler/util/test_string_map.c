/* Things by their text, however many; and words that are kept once. */
#include "../cluster.h"
#include "scheduler/util/string_map.h"

#define THINGS 5000

struct thing {
	struct string_map_entry entry;
	char text[16];
	bool is_seen;
};

static void see(void *data, void *thing)
{
	struct thing *t = thing;
	assert_false(t->is_seen);
	t->is_seen = true;
	++*(unsigned *)data;
}

static void take_out(void *data, void *thing)
{
	struct thing *t = thing;
	string_map_remove(data, &t->entry);
}

static void test_many(void **state)
{
	struct string_map table = { 0 };
	struct thing *thing = calloc(THINGS, sizeof(*thing));
	unsigned seen = 0;
	assert_null(string_map_find(&table, "0"));
	for (unsigned i = 0; i < THINGS; i++) {
		snprintf(thing[i].text, sizeof(thing[i].text), "%u", i);
		string_map_add(&table, &thing[i].entry, thing[i].text);
	}
	for (unsigned i = 0; i < THINGS; i++)
		assert_ptr_equal(string_map_find(&table, thing[i].text), &thing[i]);
	assert_null(string_map_find(&table, "5000"));
	string_map_each(&table, see, &seen);
	assert_int_equal(seen, THINGS);
	for (unsigned i = 0; i < THINGS; i += 2)
		string_map_remove(&table, &thing[i].entry);
	for (unsigned i = 0; i < THINGS; i++)
		assert_ptr_equal(string_map_find(&table, thing[i].text), i % 2 ? &thing[i] : NULL);
	string_map_each(&table, take_out, &table);
	assert_int_equal(table.count, 0);
	string_map_free(&table);
	free(thing);
}

/* As each by itself, whether there or not. */
static void test_some(void **state)
{
	struct string_map table = { 0 };
	struct thing *thing = calloc(THINGS, sizeof(*thing));
	struct string_map_text text[STRING_MAP_SOME];
	char name[STRING_MAP_SOME][16];
	void *found[STRING_MAP_SOME];
	for (unsigned n = 0; n <= THINGS; n = n * 4 + 1) {
		for (size_t i = table.count; i < n; i++) {
			snprintf(thing[i].text, sizeof(thing[i].text), "%zu", i);
			string_map_add(&table, &thing[i].entry, thing[i].text);
		}
		for (unsigned from = 0; from < n + STRING_MAP_SOME; from += STRING_MAP_SOME - 1) {
			for (unsigned i = 0; i < STRING_MAP_SOME; i++) {
				snprintf(name[i], sizeof(name[i]), "%uxy", from + i);
				text[i] = (struct string_map_text){ name[i], strlen(name[i]) - 2 };
			}
			string_map_find_some(&table, text, STRING_MAP_SOME, found);
			for (unsigned i = 0; i < STRING_MAP_SOME; i++)
				assert_ptr_equal(found[i], from + i < n ? &thing[from + i] : NULL);
		}
	}
	string_map_free(&table);
	free(thing);
}

static void test_words(void **state)
{
	struct string_map strings = { 0 };
	const char *first = intern(&strings, "GPU-a"), *other = intern(&strings, "GPU-b");
	char same[] = "GPU-a";
	assert_ptr_equal(intern(&strings, same), first);
	assert_ptr_not_equal(first, other);
	intern_release(&strings, first);
	assert_non_null(string_map_find(&strings, "GPU-a"));
	intern_release(&strings, first);
	assert_null(string_map_find(&strings, "GPU-a"));
	intern_release(&strings, other);
	intern_release(&strings, NULL);
	assert_int_equal(strings.count, 0);
	string_map_free(&strings);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_many), cmocka_unit_test(test_some),
					    cmocka_unit_test(test_words) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
