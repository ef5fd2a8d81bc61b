#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/settings.h"

struct config {
	char text[SETTINGS_TEXT_MAX], place[SETTINGS_TEXT_MAX];
	bool is_on;
	unsigned choice, count;
	uint64_t size, time_ns;
};

static int no_x(const char *value, struct error *err)
{
	return strchr(value, 'x') ? error_set(err, EINVAL, "'%s': must be without x", value) : 0;
}

static const char *const words[] = { "red", "green", "blue", NULL };

static const struct settings_row rows[] = {
	{ "text", SETTINGS_TEXT, offsetof(struct config, text), "one", .check = no_x, .help = "t" },
	{ "place", SETTINGS_PLACE, offsetof(struct config, place), "none", .help = "p" },
	{ "switch", SETTINGS_SWITCH, offsetof(struct config, is_on), "on", .help = "s" },
	{ "choice", SETTINGS_CHOICE, offsetof(struct config, choice), "green", .words = words,
	  .help = "c" },
	{ "count", SETTINGS_COUNT, offsetof(struct config, count), "3", .min = 1, .max = 9,
	  .help = "n" },
	{ "size", SETTINGS_SIZE, offsetof(struct config, size), "0", .max = 1 << 20, .help = "b" },
	{ "time", SETTINGS_DURATION, offsetof(struct config, time_ns), "2s", .min = 1000000000,
	  .max = 9000000000, .help = "d" },
};

static int not_three_blue(const void *config, struct error *err)
{
	const struct config *c = config;
	return c->count == 3 && c->choice == 2 ? error_set(err, EINVAL, "three and blue") : 0;
}

static const struct settings_table table = { rows, sizeof(rows) / sizeof(rows[0]), not_three_blue };

struct said {
	unsigned count;
	char text[8][256];
};

static void note(void *data, const char *text)
{
	struct said *said = data;
	snprintf(said->text[said->count++], sizeof(said->text[0]), "%s", text);
}

static void test_defaults(void **state)
{
	struct config c = { 0 };
	settings_default(&table, &c);
	assert_string_equal(c.text, "one");
	assert_string_equal(c.place, "none");
	assert_true(c.is_on);
	assert_int_equal(c.choice, 1);
	assert_int_equal(c.count, 3);
	assert_int_equal(c.size, 0);
	assert_int_equal(c.time_ns, 2000000000);
}

static void test_values(void **state)
{
	struct config c;
	settings_default(&table, &c);
	assert_int_equal(settings_set(&table, &c, "text", "two", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "place", "/a", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "switch", "off", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "choice", "blue", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "count", "9", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "size", "4KiB", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "time", "1500ms", NULL), 0);
	assert_string_equal(c.text, "two");
	assert_string_equal(c.place, "/a");
	assert_false(c.is_on);
	assert_int_equal(c.choice, 2);
	assert_int_equal(c.count, 9);
	assert_int_equal(c.size, 4096);
	assert_int_equal(c.time_ns, 1500000000);
}

static void test_refused(void **state)
{
	static const struct {
		const char *key, *value, *text;
		int code;
	} bad[] = {
		{ "text", "", "text: '': must be 1 to 255 bytes", -EINVAL },
		{ "text", "axe", "text: 'axe': must be without x", -EINVAL },
		{ "place", "here", "place: 'here': must be none, or a full path", -EINVAL },
		{ "switch", "yes", "switch: 'yes': must be on or off", -EINVAL },
		{ "choice", "pink", "choice: 'pink': must be red, green or blue", -EINVAL },
		{ "count", "0", "count: ", -ERANGE },
		{ "count", "10", "count: ", -ERANGE },
		{ "count", "ten", "count: ", -EINVAL },
		{ "size", "2MiB", "size: '2MiB': must be from 0MiB to 1MiB", -ERANGE },
		{ "size", "2", "size: ", -EINVAL },
		{ "time", "0", "time: ", -EINVAL },
		{ "time", "10s", "time: '10s': must be from 1s to 9s", -ERANGE },
		{ "none", "1", "none: there is no such setting", -ENOENT },
	};
	struct config before, c;
	settings_default(&table, &before);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = { 0 };
		c = before;
		int r = settings_set(&table, &c, bad[i].key, bad[i].value, &err);
		if (r >= 0 || strncmp(err.text, bad[i].text, strlen(bad[i].text)) != 0)
			fail_msg("%s = %s: %d, '%s'", bad[i].key, bad[i].value, r, err.text);
		if (bad[i].code == -ENOENT)
			assert_int_equal(r, -ENOENT);
		assert_memory_equal(&c, &before, sizeof(c));
	}
}

static void test_lines(void **state)
{
	struct config c;
	struct said said = { 0 };
	settings_default(&table, &c);
	assert_int_equal(
		settings_parse(
			&table, &c, "f",
			"# all\n\n  count = 4 # four\nchoice=blue\nwhat\nsize = 1\n\tswitch =off",
			note, &said),
		2);
	assert_string_equal(said.text[0], "f:5: what: must be 'key = value'");
	assert_memory_equal(said.text[1], "f:6: size: ", 11);
	assert_int_equal(c.count, 4);
	assert_int_equal(c.choice, 2);
	assert_false(c.is_on);
	/* What no line by itself shows. */
	said.count = 0;
	assert_int_equal(settings_parse(&table, &c, "f", "count = 3\n", note, &said), 1);
	assert_string_equal(said.text[0], "f: three and blue");
	char line[1200];
	memset(line, 'a', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	said.count = 0;
	settings_default(&table, &c);
	assert_int_equal(settings_parse(&table, &c, "f", line, note, &said), 1);
	assert_string_equal(said.text[0], "f:1: line longer than 1023 bytes");
}

static void test_files(void **state)
{
	char path[] = "/tmp/allot-settings-XXXXXX";
	struct config c;
	struct said said = { 0 };
	struct error err = { 0 };
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	settings_default(&table, &c);
	assert_int_equal(write(fd, "count = 7\n", 10), 10);
	assert_int_equal(settings_load(&table, &c, path, note, &said, &err), 0);
	assert_int_equal(c.count, 7);
	assert_int_equal(write(fd, "a\0b", 3), 3);
	assert_int_equal(settings_load(&table, &c, path, note, &said, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a text file"));
	assert_int_equal(ftruncate(fd, 70000), 0);
	assert_int_equal(settings_load(&table, &c, path, note, &said, &err), -EFBIG);
	close(fd);
	unlink(path);
	assert_int_equal(settings_load(&table, &c, path, note, &said, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_values),
		cmocka_unit_test(test_refused),  cmocka_unit_test(test_lines),
		cmocka_unit_test(test_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
