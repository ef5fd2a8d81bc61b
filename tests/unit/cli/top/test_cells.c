#include "../test.h"

#include "base/cleanup.h"
#include "cli/top/cells.h"

static const char han[] = "\xe6\xbc\xa2\xe5\xad\x97"; /* two wide characters */

static void expect(const struct cells *cells, int line, const char *wanted)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cells_write_line(cells, line, out);
	fclose(out);
	assert_string_equal(text, wanted);
	free(text);
}

static void test_put_and_cut(void **state)
{
	cleanup_cells struct cells cells = { 0 };

	assert_int_equal(cells_make(10, 3, false, &cells), 0);
	assert_int_equal(cells_put(&cells, 0, 1, 5, STYLE_PLAIN, "abc"), 3);
	expect(&cells, 0, " abc");
	assert_int_equal(cells_put(&cells, 1, 0, 4, STYLE_PLAIN, "abcdef"), 4);
	expect(&cells, 1, "abc~");
	cells_put_right(&cells, 2, 2, 6, STYLE_PLAIN, "42");
	expect(&cells, 2, "      42");
	assert_int_equal(cells_put(&cells, 0, 0, 0, STYLE_PLAIN, "x"), 0);
}

/* A wide character has two cells or is left out; it is never cut in two. */
static void test_wide(void **state)
{
	cleanup_cells struct cells cells = { 0 };

	assert_int_equal(cells_make(10, 2, false, &cells), 0);
	assert_int_equal(cells_put(&cells, 0, 0, 4, STYLE_PLAIN, han), 4);
	assert_int_equal(cells.cell[1].c, 0);
	expect(&cells, 0, han);
	assert_int_equal(cells_put(&cells, 1, 0, 3, STYLE_PLAIN, han), 3);
	expect(&cells, 1, "\xe6\xbc\xa2~");
	cells_put_char(&cells, 1, 9, STYLE_PLAIN, 0x6f22); /* half of it would stand outside */
	assert_int_equal(cells.cell[19].c, ' ');
}

static void test_ascii(void **state)
{
	cleanup_cells struct cells cells = { 0 };

	assert_int_equal(cells_make(10, 1, true, &cells), 0);
	cells_put(&cells, 0, 0, 10, STYLE_PLAIN, "a\xc3\xa9z");
	expect(&cells, 0, "a?z");
}

static void test_outside(void **state)
{
	cleanup_cells struct cells cells = { 0 };

	assert_int_equal(cells_make(0, -3, false, &cells), 0);
	assert_int_equal(cells.columns, 1);
	assert_int_equal(cells.lines, 1);
	cells_put(&cells, -1, 0, 5, STYLE_PLAIN, "abc");
	cells_put(&cells, 0, -2, 5, STYLE_PLAIN, "abc");
	cells_put(&cells, 7, 7, 5, STYLE_PLAIN, "abc");
	cells_put_right(&cells, 0, 0, -4, STYLE_PLAIN, "abc");
	cells_select(&cells, 5);
	expect(&cells, 0, "c");
}

static void test_select(void **state)
{
	cleanup_cells struct cells cells = { 0 };

	assert_int_equal(cells_make(2, 2, false, &cells), 0);
	cells_select(&cells, 1);
	assert_false(cells.cell[1].is_selected);
	assert_true(cells.cell[2].is_selected);
	assert_true(cells.cell[3].is_selected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_and_cut), cmocka_unit_test(test_wide),
		cmocka_unit_test(test_ascii),       cmocka_unit_test(test_outside),
		cmocka_unit_test(test_select),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
