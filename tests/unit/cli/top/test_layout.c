#include "lists.h"

#include "cli/top/keys.h"
#include "cli/top/layout.h"
#include "cli/top/utf8.h"

struct scene {
	json_t *list, *tasks;
	struct history *history;
	struct snapshot *snapshot;
	struct rows rows;
	struct view view;
	const char *trouble;
	bool is_page, is_ascii;
	struct cells cells;
	struct layout_result result;
	char *text; /* the lines of the last drawing */
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->list = list_new(1);
	scene->is_ascii = true;
	assert_int_equal(history_make(&scene->history), 0);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	cells_free(&scene->cells);
	order_free(&scene->rows);
	snapshot_free(scene->snapshot);
	history_free(scene->history);
	json_decref(scene->list);
	json_decref(scene->tasks);
	free(scene->text);
	free(scene);
	return 0;
}

/* Draws it, checks what holds of every drawing, and leaves the text. */
static const char *draw(struct scene *scene, int columns, int lines)
{
	struct layout layout = { .history = scene->history,
				 .view = &scene->view,
				 .source = "this machine",
				 .clock = "12:34:56",
				 .trouble = scene->trouble,
				 .is_page = scene->is_page };
	size_t size;
	FILE *out;

	cells_free(&scene->cells);
	order_free(&scene->rows);
	snapshot_free(scene->snapshot);
	free(scene->text);
	scene->snapshot = list_look_with(scene->list, scene->tasks, SECOND, scene->history);
	assert_int_equal(order_make(scene->snapshot, scene->history, scene->view.sort, false,
				    scene->view.filter, &scene->rows),
			 0);
	layout.snapshot = scene->snapshot;
	layout.rows = &scene->rows;
	if (scene->is_page)
		lines = layout_page_lines(&layout);
	assert_int_equal(cells_make(columns, lines, scene->is_ascii, &scene->cells), 0);
	layout_draw(&layout, &scene->cells, &scene->result);
	scene->view.first = scene->result.first;
	scene->view.page = scene->result.page;
	scene->view.has_details = scene->result.has_details;
	out = open_memstream(&scene->text, &size);
	for (int line = 0; line < scene->cells.lines; line++) {
		cells_write_line(&scene->cells, line, out);
		fputc('\n', out);
	}
	fclose(out);
	for (int i = 0; i < scene->cells.columns * scene->cells.lines; i++)
		assert_true(!scene->is_ascii || scene->cells.cell[i].c < 0x7f);
	return scene->text;
}

/* The text of a line, without its newline. */
static void line_of(const struct scene *scene, int line, char *ret, size_t size)
{
	FILE *out = fmemopen(ret, size, "w");

	cells_write_line(&scene->cells, line, out);
	fclose(out);
}

static int selected_lines(const struct scene *scene)
{
	int count = 0;

	for (int line = 0; line < scene->cells.lines; line++)
		count += scene->cells.cell[(size_t)line * (size_t)scene->cells.columns].is_selected;
	return count;
}

static void add_many(struct scene *scene, int count, int cards)
{
	for (int i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "ten-%02d", i);
		list_add(scene->list, name, i % 2 ? "running" : "waiting", i % cards, 10 + i % 7);
	}
}

static void test_eighty(void **state)
{
	struct scene *scene = *state;

	list_add(scene->list, "a", "running", 0, 15);
	list_add(scene->list, "b", "idle", 0, 0);
	assert_string_equal(
		draw(scene, 80, 12),
		"allot top - this machine  2 tenants: 1 running, 1 idle                  12:34:56\n"
		"GPU 0 NVIDIA H200   busy #####++++   90%  mem ...        3.0G/140G            *\n"
		"\n"
		"TENANT   GPU STATE     COMPUTE  GOT% ASKED MEMORY  USED QUOTA HISTORY LEASE WAIT\n"
		"a          0 running   #.  |    15.0    30 ##....  1.0G  4.0G       _     -    -\n"
		"b          0 idle      ..  |     0.0    30 ##....  1.0G  4.0G       _     -    -\n"
		"\n\n\n\n\n"
		"q quit  ? help  s sort  / filter  p pause  m memory  c cores  Enter details\n");
	assert_int_equal(selected_lines(scene), 1);
	assert_int_equal(scene->result.page, 7);
	assert_false(scene->result.has_details);
}

/* More room: everything of the selected tenant, and wider bars. */
static void test_large(void **state)
{
	struct scene *scene = *state;
	const char *text;

	list_add(scene->list, "a", "running", 0, 15);
	text = draw(scene, 120, 40);
	assert_true(scene->result.has_details);
	assert_non_null(strstr(text, "-- a on GPU 0 --"));
	assert_non_null(strstr(text, "30 % asked, limit 60 %; got 15.0 % in 1 s, 29.5 % in 60 s"));
	assert_non_null(strstr(text, "REFUSED"));
	assert_non_null(strstr(text, "LIMIT"));
	text = draw(scene, 200, 60);
	assert_non_null(strstr(text, "60s%"));
	assert_non_null(strstr(text, "100, 0.0 a second"));
	scene->view.details = VIEW_DETAILS_OFF;
	draw(scene, 120, 40);
	assert_false(scene->result.has_details);
	/* By request also where there is less room, but not where there is too little. */
	scene->view.details = VIEW_DETAILS_ON;
	draw(scene, 80, 24);
	assert_true(scene->result.has_details);
	draw(scene, 80, 12);
	assert_false(scene->result.has_details);
}

/* No size is too small, in any mode, with whatever names: nothing is written outside of the cells. */
static void test_every_size(void **state)
{
	static const enum view_mode modes[] = { VIEW_LIST, VIEW_FILTER, VIEW_VALUE, VIEW_CONFIRM,
						VIEW_HELP };
	struct scene *scene = *state;

	add_many(scene, 9, 1);
	list_add(scene->list, "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2",
		 "queued", 0, 50);
	scene->trouble = "no daemon runs in /run/allot/gpu";
	scene->is_ascii = false;
	draw(scene, 80, 24);
	change_begin(CHANGE_MEMORY, scene->snapshot, 0, &scene->view.change);
	for (size_t m = 0; m < sizeof(modes) / sizeof(*modes); m++) {
		scene->view.mode = modes[m];
		for (int columns = 1; columns < 130; columns += columns < 30 ? 1 : 13)
			for (int lines = 1; lines < 50; lines += lines < 16 ? 1 : 5)
				draw(scene, columns, lines);
	}
	scene->view.mode = VIEW_LIST;
	assert_string_equal(draw(scene, 20, 2), "too small\n\n");
}

static void test_no_tenants(void **state)
{
	struct scene *scene = *state;

	assert_non_null(strstr(draw(scene, 80, 24), "\nno tenants\n"));
	assert_int_equal(selected_lines(scene), 0);
	strcpy(scene->view.filter, "x");
	assert_non_null(strstr(draw(scene, 80, 24), "\nno tenant passes the filter\n"));
	assert_non_null(strstr(scene->text, "filter: x, 0 of 0 rows"));
}

/* 64 tenants on 24 lines: the selected one is in sight, and what is in sight moves no more than it must. */
static void test_scroll(void **state)
{
	struct scene *scene = *state;
	size_t first;

	add_many(scene, 64, 1);
	draw(scene, 80, 24);
	assert_int_equal(scene->result.first, 0);
	for (int i = 0; i < 63; i++) {
		keys_handle(&scene->view, scene->snapshot, &scene->rows, KEYS_DOWN);
		first = scene->result.first;
		draw(scene, 80, 24);
		assert_int_equal(selected_lines(scene), 1);
		assert_true(scene->result.first - first <= 1);
	}
	assert_non_null(strstr(scene->text, "ten-63"));
	assert_null(strstr(scene->text, "ten-00"));
	first = scene->result.first;
	keys_handle(&scene->view, scene->snapshot, &scene->rows, KEYS_UP);
	draw(scene, 80, 24);
	assert_int_equal(scene->result.first, first);
	keys_handle(&scene->view, scene->snapshot, &scene->rows, KEYS_HOME);
	draw(scene, 80, 24);
	assert_int_equal(scene->result.first, 0);
}

/* All of them stand on a page; nothing is selected there, and no keys are named. */
static void test_page(void **state)
{
	struct scene *scene = *state;
	const char *text;

	add_many(scene, 64, 1);
	scene->is_page = true;
	text = draw(scene, 100, 0);
	assert_int_equal(scene->cells.lines, 4 + 64);
	assert_non_null(strstr(text, "ten-00"));
	assert_non_null(strstr(text, "ten-63"));
	assert_null(strstr(text, "quit"));
	assert_int_equal(selected_lines(scene), 0);
	scene->trouble = "no daemon runs in /x";
	assert_non_null(strstr(draw(scene, 100, 0), "ten-63"));
}

/* An error that is longer than the screen is wide is there to its end, over the lines above the last. */
static void test_long_message(void **state)
{
	struct scene *scene = *state;
	const char *text;

	add_many(scene, 40, 1);
	scene->view.is_error = true;
	strcpy(scene->view.message,
	       "--memory 100GiB does not fit: 60.4 GiB of GPU 0 is unpromised (train 40, eval 30, "
	       "notebook 10); use --memory 60GiB, or --on-full wait");
	text = draw(scene, 80, 24);
	assert_non_null(strstr(text, "\n--memory 100GiB does not fit"));
	assert_non_null(strstr(text, "or --on-full wait\n"));
	scene->view.mode = VIEW_VALUE;
	assert_non_null(strstr(draw(scene, 80, 24), "or --on-full wait\nnew value: "));
}

static void test_cards(void **state)
{
	struct scene *scene = *state;
	const char *text;
	json_t *devices;

	json_decref(scene->list);
	scene->list = list_new(16);
	add_many(scene, 20, 16);
	text = draw(scene, 80, 24);
	/* A third of the lines at most; those that are left out are counted. */
	assert_non_null(strstr(text, "and 8 more GPUs"));
	assert_non_null(strstr(text, "GPU 7 "));
	assert_null(strstr(text, "GPU 8 "));
	assert_non_null(strstr(draw(scene, 120, 60), "GPU 15 "));
	assert_null(strstr(scene->text, "more GPUs"));
	/* A small screen is for tenants. */
	assert_null(strstr(draw(scene, 80, 9), "GPU 0 "));
	devices = json_object_get(scene->list, "devices");
	json_object_set_new(json_array_get(devices, 0), "health", json_string("unhealthy"));
	json_object_set_new(json_array_get(devices, 0), "health_reason", json_string("Xid 79"));
	assert_non_null(strstr(draw(scene, 80, 24), "\n    ! unhealthy: Xid 79\n"));
}

static void test_notices(void **state)
{
	struct scene *scene = *state;
	char line[256];

	list_add(scene->list, "a", "running", 0, 15);
	scene->trouble = "no daemon runs in /run/x";
	draw(scene, 80, 24);
	line_of(scene, 1, line, sizeof(line));
	assert_string_equal(line, "! no daemon runs in /run/x; trying again");
	/* What was there before it went away stays in sight. */
	assert_non_null(strstr(scene->text, "\na  "));
	scene->trouble = NULL;
	scene->tasks = json_loads(
		"{\"containers\":["
		"{\"id\":\"1\",\"name\":\"web\",\"state\":\"waiting\",\"frozen_s\":12.5},"
		"{\"id\":\"2\",\"name\":\"runs\",\"state\":\"running\"},"
		"{\"id\":\"3\",\"name\":\"db\",\"state\":\"paused\",\"frozen_s\":200}]}",
		0, NULL);
	draw(scene, 80, 24);
	line_of(scene, 1, line, sizeof(line));
	assert_string_equal(line, "! frozen: web waiting 12s, db paused 3m");
	assert_memory_equal(scene->text + strcspn(scene->text, "\n") + strlen(line) + 2, "GPU 0", 5);
}

static void test_questions(void **state)
{
	struct scene *scene = *state;
	char line[256];

	list_add(scene->list, "a-name-that-is-as-long-as-a-tenant-may-have-one-sixty-three-byte",
		 "running", 0, 15);
	draw(scene, 80, 24);
	keys_handle(&scene->view, scene->snapshot, &scene->rows, 'm');
	draw(scene, 80, 24);
	line_of(scene, 22, line, sizeof(line));
	assert_memory_equal(line, "memory of a-name", 16);
	line_of(scene, 23, line, sizeof(line));
	assert_string_equal(line, "new value: _");
	for (const char *c = "5XB"; *c; c++)
		keys_handle(&scene->view, scene->snapshot, &scene->rows, (uint32_t)*c);
	keys_handle(&scene->view, scene->snapshot, &scene->rows, KEYS_ENTER);
	draw(scene, 80, 24);
	line_of(scene, 22, line, sizeof(line));
	assert_memory_equal(line, "'5XB': unit unknown", 19);
	line_of(scene, 23, line, sizeof(line));
	assert_string_equal(line, "new value: 5XB_");
	keys_handle(&scene->view, scene->snapshot, &scene->rows, KEYS_ESCAPE);
	keys_handle(&scene->view, scene->snapshot, &scene->rows, 'p');
	draw(scene, 80, 24);
	/* However long the name: what y does is to be read. */
	line_of(scene, 23, line, sizeof(line));
	assert_string_equal(line, "y: do it   any other key: cancel");
}

/* Names of wide characters, in UTF-8 and where there is ASCII alone: the columns behind stand where they should. */
static void test_wide_names(void **state)
{
	struct scene *scene = *state;
	char line[256];

	list_add(scene->list, "\xe6\xbc\xa2\xe5\xad\x97", "running", 0, 15);
	draw(scene, 80, 24);
	line_of(scene, 4, line, sizeof(line));
	assert_memory_equal(line, "? ?        0 running", 20);
	scene->is_ascii = false;
	draw(scene, 80, 24);
	line_of(scene, 4, line, sizeof(line));
	assert_memory_equal(line, "\xe6\xbc\xa2\xe5\xad\x97       0 running", 6 + 16);
	assert_int_equal(utf8_columns(line), 80);
}

static void test_help(void **state)
{
	struct scene *scene = *state;

	list_add(scene->list, "a", "running", 0, 15);
	scene->view.mode = VIEW_HELP;
	draw(scene, 80, 24);
	assert_non_null(strstr(scene->text, "Ctrl-C"));
	assert_non_null(strstr(scene->text, "####~~~~.."));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_eighty),     TEST(test_large),   TEST(test_every_size),
		TEST(test_no_tenants), TEST(test_scroll),  TEST(test_page),
		TEST(test_cards),      TEST(test_notices), TEST(test_questions),
		TEST(test_wide_names), TEST(test_help),    TEST(test_long_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
