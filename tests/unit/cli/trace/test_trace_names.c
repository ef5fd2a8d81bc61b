/* Which name a key has at which moment, and streams by number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/trace/trace_names.h"

static void add(struct names *n, enum trace_name_kind kind, uint64_t key, uint64_t since,
		const char *text)
{
	struct trace_name name = { .kind = (uint32_t)kind, .key = key, .since = since };
	snprintf(name.text, sizeof(name.text), "%s", text);
	assert_int_equal(names_add(n, &name), 0);
}

static void test_by_moment(void **state)
{
	struct names *n = calloc(1, sizeof(*n));
	assert_non_null(n);
	assert_null(names_find(n, TRACE_NAMES_FUNCTION, 7, 100));
	add(n, TRACE_NAMES_FUNCTION, 7, 10, "old");
	add(n, TRACE_NAMES_THREAD, 7, 0, "main");
	add(n, TRACE_NAMES_FUNCTION, 7, 50, "new");
	assert_string_equal(names_find(n, TRACE_NAMES_FUNCTION, 7, 49), "old");
	assert_string_equal(names_find(n, TRACE_NAMES_FUNCTION, 7, 50), "new");
	/* It was named in the midst of its first launch. */
	assert_string_equal(names_find(n, TRACE_NAMES_FUNCTION, 7, 5), "old");
	assert_string_equal(names_find(n, TRACE_NAMES_THREAD, 7, 0), "main");
	assert_null(names_find(n, TRACE_NAMES_ENTRY, 7, 100));
	names_clear(n);
	assert_null(names_find(n, TRACE_NAMES_THREAD, 7, 0));
	free(n);
}

static void test_as_many_as_there_can_be(void **state)
{
	struct names *n = calloc(1, sizeof(*n));
	char text[32];
	assert_non_null(n);
	for (uint64_t i = 0; i < TRACE_NAMES + 5; i++) {
		snprintf(text, sizeof(text), "f%llu", (unsigned long long)i);
		add(n, TRACE_NAMES_FUNCTION, i << 12, 1, text);
	}
	assert_string_equal(names_find(n, TRACE_NAMES_FUNCTION, 0, 1), "f0");
	assert_string_equal(names_find(n, TRACE_NAMES_FUNCTION, 4000 << 12, 1), "f4000");
	assert_null(names_find(n, TRACE_NAMES_FUNCTION, (uint64_t)TRACE_NAMES << 12, 1));
	add(n, 0, 1, 1, "of no kind");
	add(n, 9, 1, 1, "of no kind");
	names_clear(n);
	free(n);
}

static void test_streams(void **state)
{
	struct names *n = calloc(1, sizeof(*n));
	assert_non_null(n);
	assert_int_equal(names_stream_number(n, 0x5000), 1);
	assert_int_equal(names_stream_number(n, 0x6000), 2);
	assert_int_equal(names_stream_number(n, 0x5000), 1);
	for (uint64_t i = 0; i < NAMES_STREAMS - 2; i++)
		assert_int_equal(names_stream_number(n, 0x10000 + i * 64), i + 3);
	assert_int_equal(names_stream_number(n, 1), 0);
	assert_int_equal(names_stream_number(n, 0x6000), 2);
	free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_moment),
		cmocka_unit_test(test_as_many_as_there_can_be),
		cmocka_unit_test(test_streams),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
