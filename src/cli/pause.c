/*
 * allot pause and allot resume: a paused tenant starts no more work on its GPUs; with --swap-out its memory
 * leaves them as well.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "client/pause.h"
#include "cli/command.h"
#include "cli/operand.h"
#include "cli/target.h"

#define NAME_MOST 400 /* of a container in a pod, with both their names and its namespace */

struct pause_options {
	struct daemon_target target;
	bool swap_out;
};

static const struct option_row pause_rows[] = {
	OPTION("--swap-out", OPTION_VALUE_NONE, NULL, option_flag, struct pause_options, swap_out,
	       .help = "take its memory off its GPUs too, to host memory"),
	TARGET_ROWS(struct pause_options),
	OPTION_END,
};

static const struct option_row resume_rows[] = {
	TARGET_ROWS(struct pause_options),
	OPTION_END,
};

/* The subcommand's name is the protocol's operation. */
static int tell_daemon(const struct pause_options *options, const char *op, const char *name,
		       struct error *err)
{
	cleanup_client struct client *client = NULL;
	int r = daemon_find(&options->target, &client, err);

	if (r < 0)
		return error_add(err, r, "'%s'", name);
	return client_pause(client, op, name, options->swap_out, err);
}

/* A tenant's name, a container's, or "namespace/pod/name"; an id is a word as well. */
static int check_name(const char *name, struct error *err)
{
	size_t n = 0;

	while (isalnum((unsigned char)name[n]) || (n && name[n] && strchr("._/-", name[n])))
		n++;
	if (n && !name[n] && n <= NAME_MOST)
		return 0;
	return error_set(err, EINVAL,
			 "'%.63s': must be a tenant's name, or a container's name or id", name);
}

static int pause_run(const struct command *self, int argc, char **argv)
{
	struct pause_options options = { 0 };
	struct error err = { 0 };
	int status;
	const char *name = operand_read(self, argc, argv, &options,
					"write one tenant's name; allot ps lists them", &status);

	if (!name)
		return status;
	if (check_name(name, &err) < 0)
		return command_fail(self, &err, EXIT_USAGE);
	if (tell_daemon(&options, self->name, name, &err) < 0)
		return command_fail(self, &err, EXIT_REFUSED);
	return 0;
}

const struct command command_pause = {
	.name = "pause",
	.usage = "NAME [OPTION...]",
	.summary = "let a tenant start no more work on its GPUs",
	.about = "Lets a tenant start no more work on its GPUs, until allot resume. What runs "
		 "already ends,\n"
		 "and its memory stays; or, with --swap-out, is copied to host memory and given "
		 "back: of a\n"
		 "tenant run with --on-full swap by its library, as far as it can be, of others by "
		 "the\n"
		 "driver's checkpoint call, contexts too (driver 570; allot ps --json: swap). NAME "
		 "may also\n"
		 "be a container with GPU work (allot tasks), by its name, \"namespace/pod/name\" "
		 "or "
		 "the\n"
		 "beginning of its id: that is frozen, or checkpointed. For root and members of "
		 "group "
		 "allot.",
	.rows = pause_rows,
	.operand = OPERAND_TENANT,
	.run = pause_run,
};

const struct command command_resume = {
	.name = "resume",
	.usage = "NAME [OPTION...]",
	.summary = "let a paused tenant go on",
	.rows = resume_rows,
	.operand = OPERAND_TENANT,
	.run = pause_run,
};
