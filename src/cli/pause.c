/*
 * allot pause and allot resume: a paused tenant starts no more work on its GPUs; with --swap-out its memory
 * leaves them as well.
 */
#include <string.h>

#include "base/parse.h"
#include "cli/command.h"
#include "cli/operand.h"
#include "cli/target.h"

#define CONTAINER_ID_LENGTH 64

struct pause_options {
	struct daemon_target target;
	bool swap_out;
};

static const struct option_row pause_rows[] = {
	OPTION("--swap-out", OPTION_VALUE_NONE, NULL, option_flag, struct pause_options, swap_out,
	       .help = "move its memory to host memory too, where it was\nrun with --on-full swap"),
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
	json_t *body = json_pack("{s:s}", "name", name);
	if (options->swap_out)
		json_object_set_new(body, "swap_out", json_true());
	return client_request(client, op, body, NULL, err);
}

static int pause_run(const struct command *self, int argc, char **argv)
{
	struct pause_options options = { 0 };
	struct error err = { 0 };
	int status;
	char *name = operand_read(self, argc, argv, &options,
				  "write one tenant's name; allot ps lists them", &status);

	if (!name)
		return status;
	/* The whole id of a container is longer than a name may be; its beginning says as much. */
	if (strlen(name) == CONTAINER_ID_LENGTH && strspn(name, "0123456789abcdef") == strlen(name))
		name[PARSE_NAME_MAX - 1] = '\0';
	if (parse_name(name, &err) < 0)
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
		 "back, as\n"
		 "far as it can be (allot ps --json: swap). NAME may also be the id, or its "
		 "beginning, of a\n"
		 "container with GPU work (allot tasks): that is frozen. For root and members of "
		 "group allot.",
	.rows = pause_rows,
	.run = pause_run,
};

const struct command command_resume = {
	.name = "resume",
	.usage = "NAME [OPTION...]",
	.summary = "let a paused tenant go on",
	.rows = resume_rows,
	.run = pause_run,
};
