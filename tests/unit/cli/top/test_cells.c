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

/* Bars keep their colours in the selected line: reversed, what is full looks empty. */
static void test_select_leaves_bars(void **state)
{
	static const enum style bars[] = { STYLE_GOT, STYLE_BEYOND, STYLE_ASKED };
	cleanup_cells struct cells cells = { 0 };

	assert_int_equal(cells_make(4, 1, false, &cells), 0);
	for (int i = 0; i < 3; i++)
		cells_put_char(&cells, 0, i, bars[i], 0x2588);
	cells_select(&cells, 0);
	for (int i = 0; i < 3; i++)
		assert_false(cells.cell[i].is_selected);
	assert_true(cells.cell[3].is_selected);
}

/* Whole words where they fit, wide characters whole, and cut only on the last line that there may be. */
static void test_wrapped(void **state)
{
	cleanup_cells struct cells cells = { 0 };

	assert_int_equal(cells_make(10, 4, false, &cells), 0);
	cells_put(&cells, 1, 0, 10, STYLE_PLAIN, "old text..");
	assert_int_equal(cells_put_wrapped(&cells, 0, 10, 4, STYLE_PLAIN, "not enough memory"), 2);
	expect(&cells, 0, "not enough");
	expect(&cells, 1, "memory");
	assert_int_equal(cells_put_wrapped(NULL, 0, 10, 4, STYLE_PLAIN, "not enough memory"), 2);
	assert_int_equal(cells_put_wrapped(&cells, 0, 10, 4, STYLE_PLAIN, "0123456789abc"), 2);
	expect(&cells, 0, "0123456789");
	expect(&cells, 1, "abc");
	assert_int_equal(cells_put_wrapped(&cells, 0, 10, 1, STYLE_PLAIN, "not enough memory"), 1);
	expect(&cells, 0, "not enoug~");
	assert_int_equal(cells_put_wrapped(&cells, 0, 3, 4, STYLE_PLAIN, "\u4e2d\u4e2d"), 2);
	expect(&cells, 0, "\u4e2d");
	expect(&cells, 1, "\u4e2d");
	assert_int_equal(cells_put_wrapped(&cells, 0, 1, 3, STYLE_PLAIN, "\u4e2d"), 2);
	assert_int_equal(cells_put_wrapped(&cells, 0, 10, 4, STYLE_PLAIN, ""), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_and_cut), cmocka_unit_test(test_wide),
		cmocka_unit_test(test_ascii),       cmocka_unit_test(test_outside),
		cmocka_unit_test(test_select),      cmocka_unit_test(test_select_leaves_bars),
		cmocka_unit_test(test_wrapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
