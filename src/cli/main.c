/* allot: finds the subcommand, and answers help and --version. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/completion.h"
#include "cli/daemon.h"

/* allot complete: what the shells' completion asks for; not in the list of commands, since nobody writes it. */

static void print_word(void *data, const char *word, const char *help)
{
	printf("%s\t%s\n", word, help ? help : "");
}

/* Of the daemon that the options before it name. */
static struct daemon_target find_target(int argc, char **argv)
{
	struct daemon_target target = { 0 };

	for (int i = 0; i + 2 < argc; i++) {
		const char *value = argv[i + 1];

		if (strcmp(value, "=") == 0)
			value = argv[i + 2];
		if (strcmp(argv[i], "--sim") == 0)
			target.sim_spec = value;
		else if (strcmp(argv[i], "--run-dir") == 0)
			target.run_dir = value;
	}
	return target;
}

/* Where no daemon answers there is none to be completed: nothing is said. */
static void print_tenants(int argc, char **argv)
{
	struct daemon_target target = find_target(argc, argv);
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *list = NULL;
	const char *current = argv[argc - 1];
	const json_t *tenant;
	size_t i;

	if (daemon_find(&target, &client, NULL) < 0 ||
	    client_request(client, "list", NULL, &list, NULL) < 0)
		return;
	json_array_foreach(json_object_get(list, "tenants"), i, tenant)
	{
		const char *name = json_string_value(json_object_get(tenant, "name"));
		const char *state = json_string_value(json_object_get(tenant, "state"));

		if (name && strncmp(name, current, strlen(current)) == 0)
			print_word(NULL, name, state);
	}
}

/*
 * argv[0..argc): as completion_find() has them. Prints a line "WORD\tHELP" for each word that fits, or
 * ":file", ":directory", ":command I" for what the shell itself completes. Returns 0.
 */
static int complete_run(const struct command *const *commands, int argc, char **argv)
{
	struct completion found;

	if (argc < 1)
		return 0;
	found = completion_find(commands, argc, argv, print_word, NULL);
	switch (found.want) {
	case COMPLETION_NOTHING: break;
	case COMPLETION_TENANT: print_tenants(argc, argv); break;
	case COMPLETION_FILE: puts(":file"); break;
	case COMPLETION_DIRECTORY: puts(":directory"); break;
	case COMPLETION_COMMAND: printf(":command %d\n", found.command_at); break;
	}
	return 0;
}

static const struct command *const commands[] = {
	&command_run,
	&command_ps,
	&command_set,
	&command_pause,
	&command_resume,
	&command_tasks,
	&command_top,
	&command_topo,
	&command_cdi,
	&command_cordon,
	&command_uncordon,
	&command_mirror,
	&command_bench,
	&command_doctor,
	&command_explain,
	&command_trace,
	NULL,
};

int command_fail(const struct command *self, const struct error *err, int status)
{
	fprintf(stderr, "allot: %s: %s\n", self->name, err->text);
	return status;
}

int command_help(const struct command *self)
{
	printf("Usage: allot %s %s\n\n%s\n\nOptions:\n", self->name, self->usage,
	       self->about ? self->about : self->summary);
	options_print_help(self->rows, stdout);
	printf("  --help                  this text\n");
	return 0;
}

static int print_help(void)
{
	printf("Usage: allot COMMAND [OPTION...]\n\n"
	       "Shares the GPUs of one machine: memory quotas and shares of compute.\n\n"
	       "Commands:\n");
	for (size_t i = 0; commands[i]; i++)
		printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
	printf("  %-9s %s\n", "help", "help on a command: allot help run");
	printf("  %-9s %s\n\n", "--version", "says which version this is");
	printf("For example, on a machine with a GPU:\n"
	       "  allot run --memory 4GiB --cores 30 -- python3 train.py\n"
	       "and on one without:\n"
	       "  allot run --sim h200 --memory 4GiB --cores 30 -- ./program\n");
	return 0;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static const char *command_name(const void *list, size_t i)
{
	const struct command *const *all = list;

	return all[i] ? all[i]->name : NULL;
}

static int refuse_unknown(const char *name)
{
	const char *nearest = options_nearest(name, command_name, commands);

	if (nearest)
		fprintf(stderr, "allot: '%.40s': unknown command; did you mean %s?\n", name,
			nearest);
	else
		fprintf(stderr, "allot: '%.40s': unknown command; allot help lists them\n", name);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		fprintf(stderr, "allot: no command given; allot help lists them\n");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("allot %s\n", ALLOT_VERSION);
		return 0;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "-h") == 0) {
		if (argc < 3)
			return print_help();
		command = find_command(argv[2]);
		return command ? command_help(command) : refuse_unknown(argv[2]);
	}
	if (strcmp(argv[1], "complete") == 0)
		return complete_run(commands, argc - 2, argv + 2);
	command = find_command(argv[1]);
	if (!command)
		return refuse_unknown(argv[1]);
	return command->run(command, argc - 2, argv + 2);
}
