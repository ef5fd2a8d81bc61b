#include "cli/completion.h"

#include <stdbool.h>
#include <string.h>

#define WORD_MAX 128

struct look {
	int count;
	char *const *words;
	const char *current;
	completion_offer *offer;
	void *data;
};

static void offer(const struct look *look, const char *word, const char *help)
{
	char line[WORD_MAX];

	if (strncmp(word, look->current, strlen(look->current)) != 0)
		return;
	if (help)
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(help, "\n"), help);
	look->offer(look->data, word, help ? line : NULL);
}

static const char *last_word(const char *name)
{
	const char *blank = strrchr(name, ' ');

	return blank ? blank + 1 : name;
}

static const struct command *find_command(const struct command *const *commands, const char *word)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, word) == 0)
			return commands[i];
	return NULL;
}

static const struct command *find_action(const struct command *actions, const char *word)
{
	for (size_t i = 0; actions[i].name; i++)
		if (strcmp(last_word(actions[i].name), word) == 0)
			return &actions[i];
	return NULL;
}

static void offer_options(const struct look *look, const struct option_row *rows)
{
	for (const struct option_row *row = rows; row->name; row++)
		offer(look, row->name, row->help);
	offer(look, "--help", "show the help");
}

static enum completion_want offer_values(const struct look *look, const struct option_row *row,
					 const char *prefix)
{
	const char *c = row->offered ? row->offered : "";

	while (*c) {
		char word[WORD_MAX];
		size_t length;

		c += strspn(c, " ");
		length = strcspn(c, " ");
		snprintf(word, sizeof(word), "%s%.*s", prefix, (int)length, c);
		offer(look, word, NULL);
		c += length;
	}
	if (!row->argument || *prefix)
		return COMPLETION_NOTHING;
	if (row->parse == option_devices)
		return COMPLETION_GPU;
	return strcmp(row->argument, "FILE") == 0   ? COMPLETION_FILE
	       : strcmp(row->argument, "SPEC") == 0 ? COMPLETION_FILE
	       : strcmp(row->argument, "DIR") == 0  ? COMPLETION_DIRECTORY
						    : COMPLETION_NOTHING;
}

static bool is_number(const char *word)
{
	return word[0] >= '0' && word[0] <= '9';
}

/* Returns the index after the option at words[i] and its value. *ret_row: the option if its value is to be completed. */
static int pass_option(const struct look *look, const struct option_row *rows, int i,
		       const struct option_row **ret_row)
{
	const struct option_row *row = options_find(rows, look->words[i]);
	int value = i + 1, last = look->count - 1;

	*ret_row = NULL;
	if (!row || row->value == OPTION_VALUE_NONE || strchr(look->words[i], '='))
		return i + 1;
	if (row->value == OPTION_VALUE_NUMBER_OR_NONE)
		return value < last && is_number(look->words[value]) ? value + 1 : value;
	if (value < last && strcmp(look->words[value], "=") == 0)
		value++;
	if (value >= last)
		*ret_row = row;
	return value + 1;
}

static struct completion complete_word(const struct look *look, const struct command *command,
				       bool has_operand)
{
	struct completion found = { COMPLETION_NOTHING, look->count - 1 };
	const char *equals = strchr(look->current, '=');
	const struct option_row *row = equals ? options_find(command->rows, look->current) : NULL;
	char prefix[WORD_MAX];

	if (row && row->value != OPTION_VALUE_NONE) {
		snprintf(prefix, sizeof(prefix), "%s=", row->name);
		found.want = offer_values(look, row, prefix);
	} else if (look->current[0] == '-' || command->operand == OPERAND_NONE) {
		offer_options(look, command->rows);
	} else if (command->operand == OPERAND_BENCH) {
		found.want = COMPLETION_BENCH;
	} else if (!has_operand) {
		found.want = command->operand == OPERAND_DIRECTORY ? COMPLETION_DIRECTORY
			     : command->operand == OPERAND_TENANT  ? COMPLETION_TENANT
			     : command->operand == OPERAND_GPU     ? COMPLETION_GPU
			     : command->operand == OPERAND_COMMAND ? COMPLETION_COMMAND
								   : COMPLETION_NOTHING;
	}
	return found;
}

static struct completion complete_arguments(const struct look *look, const struct command *command,
					    int first)
{
	bool has_operand = false;
	int i = first;

	while (i < look->count - 1) {
		const struct option_row *row = NULL;
		bool is_end = strcmp(look->words[i], "--") == 0;

		if (command->operand == OPERAND_COMMAND && (is_end || look->words[i][0] != '-'))
			return (struct completion){ COMPLETION_COMMAND, is_end ? i + 1 : i };
		if (is_end || look->words[i][0] != '-') {
			has_operand |= !is_end;
			i++;
			continue;
		}
		i = pass_option(look, command->rows, i, &row);
		if (row)
			return (struct completion){ offer_values(look, row, ""), 0 };
	}
	return complete_word(look, command, has_operand);
}

static void offer_commands(const struct look *look, const struct command *const *commands)
{
	for (size_t i = 0; commands[i]; i++)
		offer(look, commands[i]->name, commands[i]->summary);
}

struct completion completion_find(const struct command *const *commands, int count,
				  char *const *words, completion_offer *offer_word, void *data)
{
	const char *current = words[count - 1];
	struct look look = { count, words, strcmp(current, "=") == 0 ? "" : current, offer_word,
			     data };
	struct completion nothing = { COMPLETION_NOTHING, 0 };
	const struct command *command = find_command(commands, words[0]);

	if (count == 1) {
		offer_commands(&look, commands);
		offer(&look, "help", "show the help of a command");
		offer(&look, "version", "print the version");
		return nothing;
	}
	if (count == 2 && strcmp(words[0], "help") == 0)
		offer_commands(&look, commands);
	if (!command)
		return nothing;
	if (!command->actions)
		return complete_arguments(&look, command, 1);
	if (count == 2) {
		for (const struct command *action = command->actions; action->name; action++)
			offer(&look, last_word(action->name), action->summary);
		return nothing;
	}
	command = find_action(command->actions, words[1]);
	return command ? complete_arguments(&look, command, 2) : nothing;
}
