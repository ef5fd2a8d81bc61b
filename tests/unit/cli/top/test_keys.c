#include "lists.h"

#include "cli/top/keys.h"

struct scene {
	json_t *list;
	struct history *history;
	struct snapshot *snapshot;
	struct rows rows;
	struct view view;
};

static void sample(struct scene *scene)
{
	order_free(&scene->rows);
	snapshot_free(scene->snapshot);
	scene->snapshot = list_look(scene->list, SECOND, scene->history);
	assert_int_equal(order_make(scene->snapshot, scene->history, scene->view.sort,
				    scene->view.is_reversed, scene->view.filter, &scene->rows),
			 0);
}

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->list = list_new(1);
	assert_int_equal(history_make(&scene->history), 0);
	list_add(scene->list, "a", "running", 0, 10);
	list_add(scene->list, "b", "paused", 0, 20);
	list_add(scene->list, "c", "running", 0, 30);
	scene->view.page = 2;
	sample(scene);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	order_free(&scene->rows);
	snapshot_free(scene->snapshot);
	history_free(scene->history);
	json_decref(scene->list);
	free(scene);
	return 0;
}

static enum keys_outcome press(struct scene *scene, uint32_t key)
{
	enum keys_outcome outcome = keys_handle(&scene->view, scene->snapshot, &scene->rows, key);

	sample(scene);
	return outcome;
}

static enum keys_outcome type(struct scene *scene, const char *text)
{
	enum keys_outcome outcome = KEYS_GO_ON;

	while (*text)
		outcome = press(scene, (unsigned char)*text++);
	return outcome;
}

static void test_quit(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(press(scene, 'q'), KEYS_QUIT);
	assert_int_equal(press(scene, '?'), KEYS_GO_ON);
	assert_int_equal(scene->view.mode, VIEW_HELP);
	assert_int_equal(press(scene, 'x'), KEYS_GO_ON);
	assert_int_equal(scene->view.mode, VIEW_LIST);
	assert_int_equal(press(scene, KEYS_OTHER), KEYS_GO_ON);
}

static void test_select(void **state)
{
	static const struct {
		uint32_t key;
		const char *id;
	} steps[] = {
		{ KEYS_DOWN, "id1" },      { 'j', "id2" },
		{ KEYS_DOWN, "id2" },      { 'k', "id1" },
		{ KEYS_HOME, "id0" },      { KEYS_UP, "id0" },
		{ KEYS_PAGE_DOWN, "id2" }, { KEYS_PAGE_UP, "id0" },
		{ KEYS_END, "id2" },
	};
	struct scene *scene = *state;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		press(scene, steps[i].key);
		assert_string_equal(scene->view.selected_id, steps[i].id);
	}
	/* It is the tenant that is selected, not the place. */
	press(scene, 'r');
	assert_string_equal(scene->view.selected_id, "id2");
	assert_int_equal(order_position(&scene->rows, scene->snapshot, "id2", 0), 0);
	press(scene, KEYS_DOWN);
	assert_string_equal(scene->view.selected_id, "id1");
}

static void test_sort(void **state)
{
	struct scene *scene = *state;

	press(scene, 'C');
	assert_int_equal(scene->view.sort, ORDER_COMPUTE);
	assert_int_equal(scene->rows.share[0], 2);
	assert_non_null(strstr(scene->view.message, "GPU time"));
	press(scene, 'r');
	assert_int_equal(scene->rows.share[0], 0);
	press(scene, 's');
	assert_int_equal(scene->view.sort, ORDER_MEMORY);
	assert_false(scene->view.is_reversed);
	for (int i = 0; i < ORDER_COUNT; i++)
		press(scene, 's');
	assert_int_equal(scene->view.sort, ORDER_MEMORY);
}

static void test_filter(void **state)
{
	struct scene *scene = *state;

	/* q is a letter here, and Enter keeps what was typed. */
	type(scene, "/paqu");
	assert_int_equal(scene->rows.count, 0);
	press(scene, KEYS_BACKSPACE);
	press(scene, KEYS_BACKSPACE);
	assert_string_equal(scene->view.filter, "pa");
	assert_int_equal(scene->rows.count, 1);
	press(scene, KEYS_ENTER);
	assert_int_equal(scene->view.mode, VIEW_LIST);
	/* Escape gives up what is being typed, and at the list shows all. */
	type(scene, "/x");
	press(scene, KEYS_ESCAPE);
	assert_string_equal(scene->view.filter, "pa");
	press(scene, KEYS_ESCAPE);
	assert_string_equal(scene->view.filter, "");
	assert_int_equal(scene->rows.count, 3);
}

/* Characters go as a whole, and no more go in than there is room for. */
static void test_typing(void **state)
{
	struct scene *scene = *state;

	press(scene, '/');
	press(scene, 0xe9);
	press(scene, 0x1f600);
	assert_int_equal(strlen(scene->view.filter), 6);
	press(scene, KEYS_BACKSPACE);
	assert_string_equal(scene->view.filter, "\xc3\xa9");
	press(scene, KEYS_BACKSPACE);
	press(scene, KEYS_BACKSPACE);
	assert_string_equal(scene->view.filter, "");
	for (int i = 0; i < 100; i++)
		press(scene, 0x20ac);
	assert_int_equal(strlen(scene->view.filter), 63);
	press(scene, 21);
	assert_string_equal(scene->view.filter, "");
	press(scene, 1);
	assert_string_equal(scene->view.filter, "");
}

/* Nothing is changed but after a y. */
static void test_pause(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(press(scene, 'p'), KEYS_GO_ON);
	assert_int_equal(scene->view.mode, VIEW_CONFIRM);
	assert_int_equal(press(scene, 'n'), KEYS_GO_ON);
	assert_string_equal(scene->view.message, "nothing was changed");
	press(scene, 'p');
	assert_int_equal(press(scene, KEYS_ENTER), KEYS_GO_ON);
	press(scene, 'p');
	assert_int_equal(press(scene, 'y'), KEYS_CHANGE);
	assert_int_equal(scene->view.change.kind, CHANGE_PAUSE);
	assert_string_equal(scene->view.change.id, "id0");
	press(scene, KEYS_DOWN);
	press(scene, 'p');
	assert_int_equal(scene->view.change.kind, CHANGE_RESUME);
	assert_int_equal(press(scene, 'y'), KEYS_CHANGE);
	press(scene, 'o');
	assert_int_equal(scene->view.change.kind, CHANGE_SWAP_OUT);
}

static void test_value(void **state)
{
	struct scene *scene = *state;

	type(scene, "m5");
	assert_int_equal(press(scene, KEYS_ENTER), KEYS_GO_ON);
	assert_int_equal(scene->view.mode, VIEW_VALUE);
	assert_true(scene->view.is_error);
	assert_non_null(strstr(scene->view.message, "'5'"));
	/* What was typed can be put right. */
	type(scene, "GiB");
	assert_int_equal(press(scene, KEYS_ENTER), KEYS_GO_ON);
	assert_int_equal(scene->view.mode, VIEW_CONFIRM);
	assert_int_equal(press(scene, 'y'), KEYS_CHANGE);
	assert_int_equal(scene->view.change.to.bytes, 5 * GIB);
	/* Nothing typed, and Escape: given up. */
	type(scene, "c");
	press(scene, KEYS_ENTER);
	assert_int_equal(scene->view.mode, VIEW_LIST);
	type(scene, "l3");
	press(scene, KEYS_ESCAPE);
	assert_int_equal(scene->view.mode, VIEW_LIST);
}

/* The tenant that was meant stays meant while others come before it. */
static void test_change_stays(void **state)
{
	struct scene *scene = *state;
	json_t *tenant;

	press(scene, 'p');
	tenant = list_add(scene->list, "A-first", "running", 0, 90);
	json_object_set_new(tenant, "id", json_string("idA"));
	sample(scene);
	assert_int_equal(press(scene, 'y'), KEYS_CHANGE);
	assert_string_equal(scene->view.change.id, "id0");
	assert_string_equal(scene->view.selected_id, "id0");
}

static void test_nobody(void **state)
{
	struct scene *scene = *state;

	json_array_clear(json_object_get(scene->list, "tenants"));
	sample(scene);
	for (const char *key = "pomclPu"; *key; key++) {
		assert_int_equal(press(scene, (uint32_t)*key), KEYS_GO_ON);
		assert_int_equal(scene->view.mode, VIEW_LIST);
		assert_string_equal(scene->view.message, "no tenant is selected");
	}
	press(scene, KEYS_DOWN);
	press(scene, KEYS_END);
}

static void test_details(void **state)
{
	struct scene *scene = *state;

	press(scene, KEYS_ENTER);
	assert_int_equal(scene->view.details, VIEW_DETAILS_ON);
	scene->view.has_details = true;
	press(scene, KEYS_ENTER);
	assert_int_equal(scene->view.details, VIEW_DETAILS_OFF);
}

/* Whatever is pressed, in whatever order: a change comes of a y that follows a question, and of nothing else. */
static void test_any_keys(void **state)
{
	static const uint32_t keys[] = {
		'p',       'y',      'm',        '5',          'G',
		'i',       'B',      'c',        'l',          'P',
		'/',       'N',      'C',        's',          'r',
		'u',       'o',      '?',        0x20ac,       'j',
		'k',       KEYS_UP,  KEYS_DOWN,  KEYS_PAGE_UP, KEYS_PAGE_DOWN,
		KEYS_HOME, KEYS_END, KEYS_ENTER, KEYS_ESCAPE,  KEYS_BACKSPACE
	};
	struct scene *scene = *state;
	unsigned int random = 1, changes = 0;

	for (int i = 0; i < 20000; i++) {
		enum view_mode before = scene->view.mode;
		uint32_t key;

		random = random * 1103515245U + 12345U;
		key = keys[(random >> 16) % (sizeof(keys) / sizeof(*keys))];
		if (press(scene, key) == KEYS_CHANGE) {
			assert_int_equal(before, VIEW_CONFIRM);
			assert_int_equal(key, 'y');
			changes++;
		}
		assert_true(strlen(scene->view.filter) < VIEW_INPUT_MAX);
	}
	assert_true(changes > 10);
}

static void test_help(void **state)
{
	const char *key, *what;
	size_t i = 0;

	while (keys_help(i, &key, &what))
		assert_true(strlen(key) <= 16 && strlen(what) <= 60 && ++i);
	assert_true(i > 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_quit),   TEST(test_select),  TEST(test_sort),     TEST(test_filter),
		TEST(test_typing), TEST(test_pause),   TEST(test_value),    TEST(test_change_stays),
		TEST(test_nobody), TEST(test_details), TEST(test_any_keys), TEST(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
