#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/command.h"

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
	printf("  --help                  show this help\n");
	return 0;
}

int command_print_json(const json_t *json, size_t flags, struct error *err)
{
	if (!json)
		return error_set(err, ENOMEM, "out of memory");
	if (json_dumpf(json, stdout, flags) < 0 || putchar('\n') == EOF || fflush(stdout) != 0)
		return error_set_errno(err, errno ? errno : EIO, "standard output");
	return 0;
}

int command_columns(int otherwise)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : otherwise;
}

volatile sig_atomic_t command_signal;

static void note_signal(int number)
{
	command_signal = number;
}

void command_catch_signals(int flags)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = note_signal, .sa_flags = flags };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

int command_check_tenant(const void *options, const char *operand, struct error *err)
{
	return parse_name(operand, err);
}

static int act(const struct command *self, void *options, char *operand)
{
	struct error err = { 0 };
	if (self->check && self->check(options, operand, &err) < 0)
		return command_fail(self, &err, EXIT_USAGE);
	int r = self->act(self, options, operand, &err);
	if (r >= 0 && fflush(stdout) != 0)
		r = error_set_errno(&err, errno, "standard output");
	return r < 0 ? command_fail(self, &err, EXIT_REFUSED) : r;
}

int command_start(const struct command *self, int argc, char **argv)
{
	struct error err = { 0 };
	bool help = false;
	if (self->run)
		return self->run(self, argc, argv);
	cleanup_free void *options = calloc(1, self->options_size);
	if (!options) {
		error_set(&err, ENOMEM, "out of memory");
		return command_fail(self, &err, EXIT_REFUSED);
	}
	if (self->defaults)
		memcpy(options, self->defaults, self->options_size);
	int operands = options_read(self->rows, OPTIONS_ANYWHERE, argc, argv, options, &help, &err);
	if (help)
		return command_help(self);
	if (operands == (self->wanted ? 1 : 0))
		return act(self, options, operands ? argv[0] : NULL);
	if (operands >= 0 && self->wanted)
		error_set(&err, EINVAL, "%s", self->wanted);
	else if (operands >= 0)
		error_set(&err, EINVAL, "'%.40s': unexpected argument; see allot help %s", argv[0],
			  self->name);
	return command_fail(self, &err, EXIT_USAGE);
}

static int print_help(void)
{
	printf("Usage: allot COMMAND [OPTION...]\n\n"
	       "Shares the GPUs of one machine among tenants. A tenant is one command started by\n"
	       "allot run, or one container, with all of its processes. Each has a quota of GPU\n"
	       "memory and a share of GPU time.\n\n"
	       "Commands:\n");
	for (size_t i = 0; commands[i]; i++)
		printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
	printf("  %-9s %s\n", "help", "show the help of a command: allot help run");
	printf("  %-9s %s\n\n", "version", "print the version");
	printf("For example, on a machine with a GPU:\n"
	       "  allot run --memory 4GiB --cores 30 -- python3 train.py\n"
	       "and on one without:\n"
	       "  allot run --sim h200 --memory 4GiB --cores 30 -- ./program\n");
	return 0;
}

static const struct command *find_command(const char *name)
{
	/* Similar tools use these names for ps. */
	if (strcmp(name, "list") == 0 || strcmp(name, "ls") == 0)
		name = command_ps.name;
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
		fprintf(stderr, "allot: '%.40s': unknown command; see allot help\n", name);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		fprintf(stderr, "allot: a command is missing, such as run or ps; see allot help\n");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "version") == 0 || strcmp(argv[1], "--version") == 0 ||
	    strcmp(argv[1], "-V") == 0) {
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
	return command_start(command, argc - 2, argv + 2);
}
