#include "../test.h"

#include <math.h>

#include "base/cleanup.h"
#include "cli/top/bars.h"

static void expect_bar(bool is_ascii, struct bar bar, const char *wanted)
{
	cleanup_cells struct cells cells = { 0 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(cells_make(10, 1, is_ascii, &cells), 0);
	bar_draw(&cells, 0, 0, 10, &bar);
	cells_write_line(&cells, 0, out);
	fclose(out);
	assert_string_equal(text, wanted);
	free(text);
}

static void test_bar_ascii(void **state)
{
	expect_bar(true, (struct bar){ .got = 0.3, .has_asked = true, .asked = 0.6 }, "###...");
	expect_bar(true, (struct bar){ .got = 0.6, .has_asked = true, .asked = 0.3 }, "###+++");
	expect_bar(true, (struct bar){ .got = 0.5 }, "#####");
	expect_bar(true, (struct bar){ 0 }, "");
	expect_bar(true,
		   (struct bar){ .got = 0.2,
				 .has_asked = true,
				 .asked = 0.3,
				 .has_limit = true,
				 .limit = 0.8 },
		   "##.     |");
	/* A limit of all of it needs no mark. */
	expect_bar(true, (struct bar){ .got = 0.2, .has_limit = true, .limit = 1 }, "##");
	expect_bar(true, (struct bar){ .got = 0.6, .has_asked = true, .asked = 1, .away = 0.2 },
		   "####~~....");
}

static void test_bar_utf8(void **state)
{
	expect_bar(false, (struct bar){ .got = 0.25, .has_asked = true, .asked = 0.4 },
		   "\xe2\x96\x88\xe2\x96\x88\xe2\x96\x8c\xe2\x96\x91");
}

/* What can't be, of a daemon of another version or a counter that ran over, stays inside. */
static void test_bar_extremes(void **state)
{
	expect_bar(true, (struct bar){ .got = 7 }, "##########");
	expect_bar(true, (struct bar){ .got = -1, .has_asked = true, .asked = 9 }, "..........");
	expect_bar(true, (struct bar){ .got = NAN, .has_limit = true, .limit = NAN }, "");
}

/* Each kind of cell has a character and a style of its own: none is told by colour alone. */
static void test_bar_kinds(void **state)
{
	cleanup_cells struct cells cells = { 0 };
	struct bar bar = { .got = 0.5, .has_asked = true, .asked = 0.2 };

	assert_int_equal(cells_make(10, 1, false, &cells), 0);
	bar_draw(&cells, 0, 0, 10, &bar);
	assert_int_equal(cells.cell[0].style, STYLE_GOT);
	assert_int_equal(cells.cell[4].style, STYLE_BEYOND);
	assert_int_not_equal(cells.cell[0].c, cells.cell[4].c);
	bar = (struct bar){ .got = 0.2, .has_asked = true, .asked = 0.9 };
	bar_draw(&cells, 0, 0, 10, &bar);
	assert_int_equal(cells.cell[4].style, STYLE_ASKED);
	assert_int_not_equal(cells.cell[0].c, cells.cell[4].c);
}

static void test_spark(void **state)
{
	static const float values[] = { 0.9F, 0, 0.125F, 0.5F, 1, 3 };
	cleanup_cells struct cells cells = { 0 };

	assert_int_equal(cells_make(8, 2, true, &cells), 0);
	spark_draw(&cells, 0, 0, 5, 1, values, 6);
	/* The newest five, at the right end. */
	assert_int_equal(cells.cell[0].c, '_');
	assert_int_equal(cells.cell[1].c, '_');
	assert_int_equal(cells.cell[2].c, '-');
	assert_int_equal(cells.cell[3].c, '#');
	assert_int_equal(cells.cell[4].c, '#');
	assert_int_equal(cells.cell[5].c, ' ');
	/* Fewer values than columns: the left stays empty. */
	spark_draw(&cells, 1, 0, 8, 1, values, 2);
	assert_int_equal(cells.cell[8 + 5].c, ' ');
	assert_int_equal(cells.cell[8 + 6].c, '*');
	assert_int_equal(cells.cell[8 + 7].c, '_');
}

static void test_spark_of_two_lines(void **state)
{
	static const float values[] = { 0.25F, 0.75F };
	cleanup_cells struct cells cells = { 0 };

	assert_int_equal(cells_make(2, 2, true, &cells), 0);
	spark_draw(&cells, 0, 0, 2, 2, values, 2);
	assert_int_equal(cells.cell[0].c, ' ');
	assert_int_equal(cells.cell[2].c, '-');
	assert_int_equal(cells.cell[1].c, '-');
	assert_int_equal(cells.cell[3].c, '#');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bar_ascii),    cmocka_unit_test(test_bar_utf8),
		cmocka_unit_test(test_bar_extremes), cmocka_unit_test(test_bar_kinds),
		cmocka_unit_test(test_spark),        cmocka_unit_test(test_spark_of_two_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
