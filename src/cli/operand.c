#include "cli/operand.h"

#include <errno.h>

char *operand_read(const struct command *self, int argc, char **argv, void *options,
		   const char *wanted, int *ret_status)
{
	struct error err = { 0 };
	bool help = false;
	int r = options_read(self->rows, OPTIONS_ANYWHERE, argc, argv, options, &help, &err);

	if (help) {
		*ret_status = command_help(self);
		return NULL;
	}
	if (r == 1)
		return argv[0];
	if (r >= 0)
		error_set(&err, EINVAL, "%s", wanted);
	*ret_status = command_fail(self, &err, EXIT_USAGE);
	return NULL;
}

const char *operand_read_tenant(const struct command *self, int argc, char **argv, void *options,
				int *ret_status)
{
	struct error err = { 0 };
	const char *name = operand_read(self, argc, argv, options,
					"write one tenant's name; allot ps lists them", ret_status);

	if (name && parse_name(name, &err) < 0) {
		*ret_status = command_fail(self, &err, EXIT_USAGE);
		return NULL;
	}
	return name;
}

int operand_read_none(const struct command *self, int argc, char **argv, void *options)
{
	struct error err = { 0 };
	bool help = false;
	int r = options_read(self->rows, OPTIONS_ANYWHERE, argc, argv, options, &help, &err);

	if (help)
		return command_help(self);
	if (r > 0)
		r = error_set(&err, EINVAL, "'%.40s': unexpected argument; see allot help %s",
			      argv[0], self->name);
	return r < 0 ? command_fail(self, &err, EXIT_USAGE) : -1;
}
