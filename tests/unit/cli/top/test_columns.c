#include "lists.h"

#include "cli/top/columns.h"

static void test_short_numbers(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *wanted;
	} tried[] = {
		{ 0, "0B" },
		{ 999, "999B" },
		{ 1000, "1.0K" },
		{ 512 << 20, "512M" },
		{ 2684354560, "2.5G" },
		{ 150754820096, "140G" },
		{ UINT64_MAX, "16384P" },
	};
	char text[COLUMNS_SHORT_MAX];

	for (size_t i = 0; i < sizeof(tried) / sizeof(*tried); i++) {
		columns_short_bytes(tried[i].bytes, text);
		assert_string_equal(text, tried[i].wanted);
	}
	columns_short_pct(29.94, text);
	assert_string_equal(text, "29.9");
	columns_short_pct(99.96, text);
	assert_string_equal(text, "100");
	columns_short_seconds(6.04, text);
	assert_string_equal(text, "6.0s");
	columns_short_seconds(99.4, text);
	assert_string_equal(text, "99s");
	columns_short_seconds(150, text);
	assert_string_equal(text, "2m");
	columns_short_seconds(3600.0 * 30, text);
	assert_string_equal(text, "30h");
	columns_short_seconds(1e300, text);
	assert_string_equal(text, "99999h");
}

/* Whatever the width, the columns and their gaps have room in it, and the names are there. */
static void test_every_width(void **state)
{
	cleanup_json json_t *list = list_new(1);
	cleanup_snapshot struct snapshot *snapshot = NULL;
	size_t share = 0;
	struct rows rows = { .count = 1, .share = &share };

	list_add(list, "a-tenant-with-quite-a-long-name", "running", 0, 10);
	snapshot = list_look(list, 1, NULL);
	for (int width = 8; width <= 400; width++) {
		struct columns columns;
		int total = -1;

		columns_fit(snapshot, &rows, width, &columns);
		for (int i = 0; i < COLUMNS_MAX; i++)
			total += columns.width[i] ? columns.width[i] + 1 : 0;
		assert_true(total <= width);
		assert_true(columns.width[0] >= 8);
		if (width >= 200)
			assert_int_equal(columns.width[0], 31);
	}
}

static void draw(const json_t *list, int width, char *titles, char *row, size_t size)
{
	cleanup_snapshot struct snapshot *snapshot = NULL;
	cleanup_history struct history *history = NULL;
	cleanup_cells struct cells cells = { 0 };
	struct columns columns;
	size_t share = 0;
	struct rows rows = { .count = 1, .share = &share };
	FILE *out;

	assert_int_equal(history_make(&history), 0);
	snapshot = list_look(list, SECOND, history);
	assert_int_equal(cells_make(width, 2, true, &cells), 0);
	columns_fit(snapshot, &rows, width, &columns);
	columns_draw_titles(&cells, 0, &columns, ORDER_NAME);
	columns_draw_share(&cells, 1, &columns, snapshot, history, 0);
	out = fmemopen(titles, size, "w");
	cells_write_line(&cells, 0, out);
	fclose(out);
	out = fmemopen(row, size, "w");
	cells_write_line(&cells, 1, out);
	fclose(out);
}

static void test_eighty(void **state)
{
	cleanup_json json_t *list = list_new(1);
	char titles[256], row[256];

	list_add(list, "a", "running", 0, 15);
	draw(list, 80, titles, row, sizeof(row));
	assert_string_equal(titles,
			    "TENANT   GPU STATE     COMPUTE  GOT% ASKED MEMORY  USED QUOTA HISTORY "
			    "LEASE WAIT");
	assert_string_equal(row,
			    "a          0 running   #.  |    15.0    30 ##....  1.0G  4.0G       _ "
			    "    -    -");
}

/* What nobody has takes no room; what somebody has is there at 120 columns. */
static void test_told(void **state)
{
	cleanup_json json_t *list = list_new(1);
	json_t *tenant = list_add(list, "a", "queued", 0, 15);
	char titles[512], row[512];

	draw(list, 160, titles, row, sizeof(row));
	assert_null(strstr(titles, "VIOLATION"));
	assert_null(strstr(titles, "CONTAINER"));
	assert_null(strstr(titles, "SWAPPED"));
	json_object_set_new(tenant, "violations", json_integer(2));
	json_object_set_new(tenant, "priority", json_integer(-3));
	json_object_set_new(tenant, "containers",
			    json_pack("[{s:s, s:s}]", "id", "x", "name", "web"));
	json_object_set_new(tenant, "swap",
			    json_pack("{s:s, s:I}", "state", "out", "swapped_bytes",
				      (json_int_t)(GIB / 2)));
	json_object_set_new(tenant, "memory_wait",
			    json_pack("{s:f, s:i}", "waited_s", 6.0, "place", 2));
	draw(list, 160, titles, row, sizeof(row));
	assert_non_null(strstr(titles, "VIOLATION"));
	assert_non_null(strstr(row, "2 gone"));
	assert_non_null(strstr(row, "queued#2"));
	assert_non_null(strstr(row, "6.0s"));
	assert_non_null(strstr(row, "512M"));
	assert_non_null(strstr(row, "-3"));
	assert_non_null(strstr(row, "web"));
	/* Who got round the library is not left out where there is little room. */
	draw(list, 80, titles, row, sizeof(row));
	assert_non_null(strstr(titles, "VIOLATION"));
}

/* Before leases a second, where there is little room. */
static void test_steps(void **state)
{
	cleanup_json json_t *list = list_new(1);
	json_t *tenant = list_add(list, "a", "running", 0, 15);
	char titles[512], row[512];

	draw(list, 160, titles, row, sizeof(row));
	assert_null(strstr(titles, "P50"));
	json_object_set_new(list_device(tenant), "steps",
			    json_pack("{s:f, s:f, s:f}", "per_second", 80.25, "p50_ms", 12.04,
				      "p99_ms", 31.5));
	draw(list, 160, titles, row, sizeof(row));
	assert_non_null(strstr(titles, "   P50    P99 STEP/s "));
	assert_non_null(strstr(row, "12.0ms 31.5ms   80.2 "));
	draw(list, 80, titles, row, sizeof(row));
	assert_non_null(strstr(titles, "   P50    P99 "));
	assert_null(strstr(titles, "LEASE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_numbers), cmocka_unit_test(test_every_width),
		cmocka_unit_test(test_eighty),        cmocka_unit_test(test_told),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
