#include "test.h"

#include "cli/options.h"

struct values {
	struct option_size size;
	struct option_percent share;
	struct option_duration again;
	struct option_int number;
	const char *choice;
	const char *text;
	bool flag;
};

static const struct option_row rows[] = {
	OPTION("--memory", OPTION_VALUE_REQUIRED, "SIZE", option_size, struct values, size,
	       .help = "one\ntwo"),
	OPTION("--cores", OPTION_VALUE_REQUIRED, "PERCENT", option_percent, struct values, share,
	       .help = "share"),
	OPTION("--watch", OPTION_VALUE_NUMBER_OR_NONE, "[S]", option_duration, struct values, again,
	       .help = "again"),
	OPTION("--priority", OPTION_VALUE_REQUIRED, "N", option_int, struct values, number,
	       .min = -5, .max = 5, .help = "number"),
	OPTION("--on-full", OPTION_VALUE_REQUIRED, "fail", option_choice, struct values, choice,
	       .offered = "fail wait swap", .help = "choice"),
	OPTION("--a-name-that-is-very-long", OPTION_VALUE_REQUIRED, "T", option_text, struct values,
	       text, .help = "text"),
	OPTION("--json", OPTION_VALUE_NONE, NULL, option_flag, struct values, flag, .help = "flag"),
	OPTION_END,
};

/* Splits a line at blanks, as argv. */
static int read_line(char *line, enum option_order order, struct values *values, char **argv,
		     bool *help, struct error *err)
{
	int argc = 0;

	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	*values = (struct values){ 0 };
	*help = false;
	return options_read(rows, order, argc, argv, values, help, err);
}

static void test_values(void **state)
{
	char line[] = "--memory 4GiB --cores=12.5 --priority -3 --on-full fail --json -- cmd --json";
	struct values values;
	char *argv[32];
	bool help;

	assert_int_equal(read_line(line, OPTIONS_THEN_OPERANDS, &values, argv, &help, NULL), 2);
	assert_true(values.size.is_set && values.size.bytes == 4ULL << 30);
	assert_true(values.share.is_set && values.share.pct == 12.5);
	assert_true(values.number.is_set && values.number.value == -3);
	assert_false(values.again.is_set);
	assert_true(values.flag);
	assert_string_equal(values.choice, "fail");
	assert_string_equal(argv[0], "cmd");
	assert_string_equal(argv[1], "--json");
}

static void test_operands_end_options(void **state)
{
	char line[] = "--json cmd --memory 4";
	char mixed[] = "name --json --memory 4GiB";
	struct values values;
	char *argv[32];
	bool help;

	assert_int_equal(read_line(line, OPTIONS_THEN_OPERANDS, &values, argv, &help, NULL), 3);
	assert_false(values.size.is_set);
	assert_string_equal(argv[0], "cmd");
	assert_int_equal(read_line(mixed, OPTIONS_ANYWHERE, &values, argv, &help, NULL), 1);
	assert_true(values.size.is_set);
	assert_string_equal(argv[0], "name");
}

static void test_optional_value(void **state)
{
	char with[] = "--watch 0.5", without[] = "--watch --json", last[] = "--watch";
	struct values values;
	char *argv[32];
	bool help;

	assert_int_equal(read_line(with, OPTIONS_ANYWHERE, &values, argv, &help, NULL), 0);
	assert_true(values.again.is_set && values.again.ns == 500000000ULL);
	assert_int_equal(read_line(without, OPTIONS_ANYWHERE, &values, argv, &help, NULL), 0);
	assert_true(values.again.is_set && values.flag);
	assert_int_equal(read_line(last, OPTIONS_ANYWHERE, &values, argv, &help, NULL), 0);
	assert_true(values.again.is_set);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *line, *says;
	} bad[] = {
		{ "--memory", "--memory: a value is missing; write --memory SIZE" },
		{ "--memory 4XB", "--memory: '4XB': unit unknown" },
		{ "--memory=", "--memory: '': is empty" },
		{ "--mem 4GiB", "--mem: unknown option; did you mean --memory?" },
		{ "--core=3", "--core: unknown option; did you mean --cores?" },
		{ "--jsno", "did you mean --json?" },
		{ "--zzz", "--zzz: unknown option; --help lists the options" },
		{ "-x", "-x: unknown option" },
		{ "--json=1", "--json: takes no value" },
		{ "--priority 6", "from -5 to 5" },
		{ "--on-full wai", "--on-full: 'wai': must be fail, wait or swap" },
		{ "--on-full=", "must be fail, wait or swap" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = { 0 };
		struct values values;
		char line[100], *argv[32];
		bool help;

		strcpy(line, bad[i].line);
		assert_true(read_line(line, OPTIONS_ANYWHERE, &values, argv, &help, &err) < 0);
		assert_non_null(strstr(err.text, bad[i].says));
	}
}

static void test_help(void **state)
{
	char line[] = "--json --help --zzz";
	struct values values;
	char *argv[32], text[2000] = "";
	bool help;
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_int_equal(read_line(line, OPTIONS_ANYWHERE, &values, argv, &help, NULL), 0);
	assert_true(help);
	options_print_help(rows, out);
	fclose(out);
	assert_non_null(strstr(text, "\n                          two\n"));
	assert_non_null(strstr(text, "  --memory SIZE           one\n"));
	assert_non_null(
		strstr(text, "  --a-name-that-is-very-long T\n                          text"));
	for (const struct option_row *row = rows; row->name; row++)
		assert_non_null(strstr(text, row->name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),         cmocka_unit_test(test_operands_end_options),
		cmocka_unit_test(test_optional_value), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
