#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/fnv.h"
#include "base/text_index.h"

#define COUNT 5000

struct thing {
	struct text_index_entry entry;
	char name[16];
};

static struct text_index index_;
static struct thing things[COUNT];

static void test_many(void **state)
{
	for (unsigned i = 0; i < COUNT; i++) {
		snprintf(things[i].name, sizeof(things[i].name), "n-%u", i);
		assert_null(text_index_find(&index_, things[i].name));
		text_index_add(&index_, &things[i].entry, things[i].name, &things[i]);
	}
	/* In another order than they came: of a chain the first, the last and what is between go. */
	for (unsigned n = 0, i = 0; n < COUNT; n++, i = (i + 1777) % COUNT) {
		assert_ptr_equal(text_index_find(&index_, things[i].name), &things[i]);
		text_index_remove(&index_, &things[i].entry);
		assert_null(text_index_find(&index_, things[i].name));
	}
	for (unsigned i = 0; i < TEXT_INDEX_BUCKETS; i++)
		assert_null(index_.bucket[i]);
}

static void test_the_first_of_two(void **state)
{
	struct text_index_entry first, second;
	text_index_add(&index_, &first, "same", &first);
	text_index_add(&index_, &second, "same", &second);
	assert_ptr_equal(text_index_find(&index_, "same"), &first);
	text_index_remove(&index_, &first);
	assert_ptr_equal(text_index_find(&index_, "same"), &second);
	text_index_remove(&index_, &first);
	assert_ptr_equal(text_index_find(&index_, "same"), &second);
	text_index_remove(&index_, &second);
	assert_null(text_index_find(&index_, "same"));
	assert_null(text_index_find(&index_, ""));
}

/* Test vectors of draft-eastlake-fnv. */
static void test_hash(void **state)
{
	assert_true(fnv32("foobar", 6) == 0xbf9cf968);
	assert_true(fnv64(FNV64_BEGIN, "foobar", 6) == 0x85944171f73967e8);
	assert_true(fnv64(fnv64(FNV64_BEGIN, "foo", 3), "bar", 3) == 0x85944171f73967e8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_the_first_of_two),
		cmocka_unit_test(test_hash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
