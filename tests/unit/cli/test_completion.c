/* What completion offers, of commands like allot's own. */
#include "test.h"

#include "cli/completion.h"

struct values {
	const char *text;
	bool flag;
	struct option_duration again;
	struct option_devices gpus;
};

static const struct option_row rows[] = {
	OPTION("--name", OPTION_VALUE_REQUIRED, "NAME", option_text, struct values, text,
	       .help = "its name\nin two lines"),
	OPTION("--elastic", OPTION_VALUE_REQUIRED, "on|off", option_choice, struct values, text,
	       .offered = "on off", .help = "elastic"),
	OPTION("--out", OPTION_VALUE_REQUIRED, "DIR", option_text, struct values, text,
	       .help = "out"),
	OPTION("--file", OPTION_VALUE_REQUIRED, "FILE", option_text, struct values, text,
	       .help = "file"),
	OPTION("--watch", OPTION_VALUE_NUMBER_OR_NONE, "[S]", option_duration, struct values, again,
	       .help = "again"),
	OPTION("--json", OPTION_VALUE_NONE, NULL, option_flag, struct values, flag, .help = "JSON"),
	OPTION_END,
};
static const struct command run = { .name = "run", .rows = rows, .operand = OPERAND_COMMAND };
static const struct command set = { .name = "set", .rows = rows, .operand = OPERAND_TENANT };
static const struct command ps = { .name = "ps", .summary = "tenants", .rows = rows };
static const struct command actions[] = {
	{ .name = "cdi create", .rows = rows, .operand = OPERAND_OTHER },
	{ .name = "cdi list", .rows = rows },
	{ .name = NULL },
};
static const struct command cdi = { .name = "cdi", .rows = rows, .actions = actions };
static const struct option_row gpu_rows[] = {
	OPTION("--gpu", OPTION_VALUE_REQUIRED, "LIST", option_devices, struct values, gpus,
	       .help = "GPUs"),
	OPTION("--sim", OPTION_VALUE_REQUIRED, "SPEC", option_text, struct values, text,
	       .offered = "h200 dgx-a100", .help = "simulated"),
	OPTION_END,
};
static const struct command cordon = { .name = "cordon", .rows = gpu_rows, .operand = OPERAND_GPU };
static const struct command bench = { .name = "bench", .rows = gpu_rows, .operand = OPERAND_BENCH };
static const struct command *const commands[] = { &run, &set, &ps, &cdi, &cordon, &bench, NULL };

static char offered[1024];

static void note(void *data, const char *word, const char *help)
{
	size_t used = strlen(offered);

	assert_true(!help || !strchr(help, '\n'));
	snprintf(offered + used, sizeof(offered) - used, "%s%s", used ? " " : "", word);
}

/* Words are separated by '|'; "run|" completes an empty word after "run". */
static void expect(const char *line, const char *words, enum completion_want want, int at)
{
	char copy[256], *list[16], *rest = copy;
	struct completion found;
	int count = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	while (rest)
		list[count++] = strsep(&rest, "|");
	*offered = '\0';
	found = completion_find(commands, count, list, note, NULL);
	assert_string_equal(offered, words);
	assert_int_equal(found.want, want);
	if (want == COMPLETION_COMMAND)
		assert_int_equal(found.command_at, at);
}

#define ALL "--name --elastic --out --file --watch --json --help"

static void test_commands_and_actions(void **state)
{
	expect("", "run set ps cdi cordon bench help version", COMPLETION_NOTHING, 0);
	expect("s", "set", COMPLETION_NOTHING, 0);
	expect("help|p", "ps", COMPLETION_NOTHING, 0);
	expect("unknown|", "", COMPLETION_NOTHING, 0);
	expect("cdi|", "create list", COMPLETION_NOTHING, 0);
	expect("cdi|list|--j", "--json", COMPLETION_NOTHING, 0);
	expect("cdi|none|", "", COMPLETION_NOTHING, 0);
}

static void test_options_and_values(void **state)
{
	expect("ps|", ALL, COMPLETION_NOTHING, 0);
	expect("ps|--json|--n", "--name", COMPLETION_NOTHING, 0);
	expect("ps|--elastic|", "on off", COMPLETION_NOTHING, 0);
	expect("ps|--elastic|of", "off", COMPLETION_NOTHING, 0);
	expect("ps|--elastic=o", "--elastic=on --elastic=off", COMPLETION_NOTHING, 0);
	/* As bash has it. */
	expect("ps|--elastic|=", "on off", COMPLETION_NOTHING, 0);
	expect("ps|--elastic|=|of", "off", COMPLETION_NOTHING, 0);
	expect("ps|--out|", "", COMPLETION_DIRECTORY, 0);
	expect("ps|--file|x", "", COMPLETION_FILE, 0);
	expect("ps|--name|", "", COMPLETION_NOTHING, 0);
	expect("ps|--watch|2|--j", "--json", COMPLETION_NOTHING, 0);
	expect("ps|--watch|--j", "--json", COMPLETION_NOTHING, 0);
}

static void test_operands(void **state)
{
	expect("set|", "", COMPLETION_TENANT, 0);
	expect("set|--json|a", "", COMPLETION_TENANT, 0);
	expect("set|a|", "", COMPLETION_NOTHING, 0);
	expect("set|a|-", ALL, COMPLETION_NOTHING, 0);
	expect("run|py", "", COMPLETION_COMMAND, 1);
	expect("run|--name|a|py", "", COMPLETION_COMMAND, 3);
	expect("run|--name|=|a|--|py", "", COMPLETION_COMMAND, 5);
	/* Its options are its own. */
	expect("run|--json|python3|--n", "", COMPLETION_COMMAND, 2);
	expect("run|--", ALL, COMPLETION_NOTHING, 0);
	expect("cdi|create|x", "", COMPLETION_NOTHING, 0);
	expect("cordon|", "", COMPLETION_GPU, 0);
	expect("cordon|0|", "", COMPLETION_NOTHING, 0);
	/* Several may follow each other. */
	expect("bench|shares|", "", COMPLETION_BENCH, 0);
	expect("bench|--gpu|G", "", COMPLETION_GPU, 0);
	expect("bench|--sim|h", "h200", COMPLETION_FILE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands_and_actions),
		cmocka_unit_test(test_options_and_values),
		cmocka_unit_test(test_operands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
