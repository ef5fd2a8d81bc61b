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

#include "base/settings/settings.h"

struct config {
	char text[SETTINGS_TEXT_MAX], place[SETTINGS_TEXT_MAX];
	bool is_on;
	unsigned choice, count;
	uint64_t size, time_ns, delay_ns, room;
	bool is_hard;
	double part_pct, gain, kept;
};

static int no_x(const char *value, struct error *err)
{
	return strchr(value, 'x') ? error_set(err, EINVAL, "'%s': must be without x", value) : 0;
}

static int not_zero(const char *value, struct error *err)
{
	return strcmp(value, "0") ? 0 : error_set(err, ERANGE, "'0': must be above 0");
}

static const char *const limits[] = { "soft", "hard", NULL };
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
	{ "delay", SETTINGS_DURATION, offsetof(struct config, delay_ns), "0.0s", .max = 9000000000,
	  .help = "d" },
	{ "room", SETTINGS_SIZE, offsetof(struct config, room), "auto", 1 << 20, 1 << 30, "r" },
	{ "limit", SETTINGS_EITHER, offsetof(struct config, is_hard), "soft", .words = limits,
	  .help = "l" },
	{ "part", SETTINGS_PERCENT, offsetof(struct config, part_pct), "10", 0,
	  SETTINGS_PERCENT_BOUND(50), "p" },
	{ "gain", SETTINGS_NUMBER, offsetof(struct config, gain), "auto", 0, 9, "g",
	  .check = not_zero, .automatic = -1 },
	{ "kept", SETTINGS_PERCENT, offsetof(struct config, kept), NULL, 0,
	  SETTINGS_PERCENT_BOUND(100), "k" },
};

static int twice(const struct config *config, const char *value, char ret[SETTINGS_TEXT_MAX],
		 struct error *err)
{
	return *value ? settings_put(ret, err, "%s%s", value, value)
		      : settings_put(ret, err, "%s", "");
}

static int only_true(const struct config *config, const char *value, char ret[SETTINGS_TEXT_MAX],
		     struct error *err)
{
	return settings_parse_bool(value, err) == 1 ? settings_put(ret, err, "%s", "") : -EINVAL;
}

static const struct settings_alias aliases[] = {
	{ "other-text", "text", twice, "twice" },
	{ "itself", NULL, only_true, "it does", "must be true", true },
	{ "gone", NULL, NULL, "nobody needs it" },
	{ NULL },
};

static int not_three_blue(const struct config *c, struct error *err)
{
	return c->count == 3 && c->choice == 2 ? error_set(err, EINVAL, "three and blue") : 0;
}

static const struct settings_table table = {
	.row = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.check = (const settings_check[]){ not_three_blue, NULL },
	.alias = aliases,
};

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
	struct config c = { .kept = 7.5, .gain = 1 };
	char text[SETTINGS_TEXT_MAX];
	settings_default(&table, &c);
	assert_true(c.kept == 7.5 && c.gain == -1 && c.part_pct == 10 && !c.is_hard);
	assert_int_equal(c.room, 0);
	settings_format_default(settings_find(&table, "kept"), &c, text, sizeof(text));
	assert_string_equal(text, "7.5");
	assert_string_equal(c.text, "one");
	assert_string_equal(c.place, "none");
	assert_true(c.is_on);
	assert_int_equal(c.choice, 1);
	assert_int_equal(c.count, 3);
	assert_int_equal(c.size, 0);
	assert_int_equal(c.time_ns, 2000000000);
}

/* A default that is in the program's code, not in the table: printed as it would be set. */
static void test_defaults_without_text(void **state)
{
	static const struct {
		const char *name, *text;
	} of[] = {
		{ "text", "one" },    { "place", "none" }, { "switch", "off" }, { "limit", "hard" },
		{ "choice", "blue" }, { "count", "9" },    { "size", "4KiB" },  { "time", "3s" },
		{ "part", "12.5" },   { "gain", "2.5" },
	};
	struct config c;
	char text[SETTINGS_TEXT_MAX];
	memset(&c, 0xff, sizeof(c)); /* a field read beyond its end shows */
	settings_default(&table, &c);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct settings_row row = *settings_find(&table, of[i].name);
		assert_int_equal(settings_set(&table, &c, of[i].name, of[i].text, NULL), 0);
		row.default_text = NULL;
		settings_format_default(&row, &c, text, sizeof(text));
		assert_string_equal(text, of[i].text);
	}
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
	assert_int_equal(settings_set(&table, &c, "room", "2MiB", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "limit", "hard", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "delay", "0ns", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "part", "0", NULL), 0);
	assert_int_equal(settings_set(&table, &c, "gain", "2.5", NULL), 0);
	assert_true(c.room == 2 << 20 && c.is_hard && c.part_pct == 0 && c.gain == 2.5);
	assert_string_equal(c.text, "two");
	assert_string_equal(c.place, "/a");
	assert_false(c.is_on);
	assert_int_equal(c.choice, 2);
	assert_int_equal(c.count, 9);
	assert_int_equal(c.size, 4096);
	assert_int_equal(c.time_ns, 1500000000);
}

static void test_zeros(void **state)
{
	static const struct {
		const char *key, *value;
	} zero[] = {
		{ "size", "0" },   { "size", "0MiB" }, { "size", "0.0KiB" }, { "delay", "0" },
		{ "delay", "0h" }, { "part", "0" },    { "part", "0%" },     { "part", "0.00%" },
	};
	for (size_t i = 0; i < sizeof(zero) / sizeof(zero[0]); i++) {
		struct config c = { .size = 1, .delay_ns = 1, .part_pct = 1 };
		struct error err = { 0 };
		if (settings_set(&table, &c, zero[i].key, zero[i].value, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal((c.size == 0) + (c.delay_ns == 0) + (c.part_pct == 0), 1);
	}
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
		{ "size", "0%", "size: '0%': ", -EINVAL },
		{ "size", "0.5B", "size: '0.5B': ", -EINVAL },
		{ "part", "0%%", "part: '0%%': not a number", -EINVAL },
		{ "part", "0s", "part: '0s': not a number", -EINVAL },
		{ "time", "0", "time: ", -EINVAL },
		{ "size", ".", "size: '.': not a number", -EINVAL },
		{ "size", "0.", "size: '0.': not a number", -EINVAL },
		{ "part", "...", "part: '...': not a number", -EINVAL },
		{ "part", "0.0.0", "part: '0.0.0': not a number", -EINVAL },
		{ "delay", ".s", "delay: '.s': not a number", -EINVAL },
		{ "delay", "0.0.0s", "delay: '0.0.0s': ", -EINVAL },
		{ "time", "10s", "time: '10s': must be from 1s to 9s", -ERANGE },
		{ "room", "2GiB", "room: '2GiB': must be from 1MiB to 1024MiB", -ERANGE },
		{ "limit", "on", "limit: 'on': must be soft or hard", -EINVAL },
		{ "part", "50.5", "part: '50.5': must be from 0 to 50", -ERANGE },
		{ "gain", "10", "gain: ", -ERANGE },
		{ "gain", "0", "gain: '0': must be above 0", -ERANGE },
		{ "kept", "auto", "kept: ", -EINVAL },
		{ "other_text", "x", "other_text: text: 'xx': must be without x", -EINVAL },
		{ "itself", "false", "itself: 'false': must be true: it does", -EINVAL },
		{ "gone", "1", "gone: '1': allot has no such setting: nobody needs it", -EINVAL },
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

static void test_names_of_others(void **state)
{
	struct config c;
	bool is_switch;
	settings_default(&table, &c);
	assert_int_equal(settings_set(&table, &c, "other_text", "ab", NULL), 0);
	assert_string_equal(c.text, "abab");
	assert_int_equal(settings_set(&table, &c, "other-text", "", NULL), 0);
	assert_string_equal(c.text, "abab");
	assert_int_equal(settings_set(&table, &c, "itself", "TRUE", NULL), 0);
	assert_string_equal(settings_name(&table, table.count, &is_switch), "other-text");
	assert_false(is_switch);
	assert_string_equal(settings_name(&table, table.count + 1, &is_switch), "itself");
	assert_true(is_switch);
	assert_null(settings_name(&table, table.count + 3, &is_switch));
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
	assert_int_equal(settings_parse(&table, &c, "f", "count = 3\n", note, &said), 0);
	assert_int_equal(settings_check_all(&table, &c, "f", note, &said), 1);
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

static void test_list_matches(void **state)
{
	assert_true(settings_list_matches("a", "a"));
	assert_true(settings_list_matches("a,b/*", "b/c/d"));
	assert_true(settings_list_matches(" a , b\t,c ", "a"));
	assert_true(settings_list_matches(" a , b\t,c ", "b"));
	assert_true(settings_list_matches(" a , b\t,c ", "c"));
	assert_false(settings_list_matches("a,b", "ab"));
	assert_false(settings_list_matches("", ""));
	assert_false(settings_list_matches("a, ,b", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),     cmocka_unit_test(test_defaults_without_text),
		cmocka_unit_test(test_values),       cmocka_unit_test(test_zeros),
		cmocka_unit_test(test_refused),      cmocka_unit_test(test_names_of_others),
		cmocka_unit_test(test_lines),        cmocka_unit_test(test_files),
		cmocka_unit_test(test_list_matches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
