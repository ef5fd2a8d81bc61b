/* allot cordon and allot uncordon: a GPU takes no new tenants, or again; those on it go on. */
#include <errno.h>
#include <string.h>

#include "cli/command.h"
#include "cli/operand.h"
#include "cli/target.h"

struct cordon_options {
	struct daemon_target target;
};

static const struct option_row rows[] = {
	TARGET_ROWS(struct cordon_options),
	OPTION_END,
};

static json_t *make_request(const struct parse_devices *devices, bool cordoned)
{
	const struct parse_device *device = &devices->item[0];
	json_t *body = json_pack("{s:b}", "cordoned", cordoned);

	if (device->by_uuid)
		json_object_set_new(body, "uuid", json_string(device->uuid));
	else
		json_object_set_new(body, "index", json_integer(device->index));
	return body;
}

static int cordon(const struct cordon_options *options, const struct parse_devices *devices,
		  bool cordoned, struct error *err)
{
	cleanup_client struct client *client = NULL;
	int r = daemon_find(&options->target, &client, err);

	return r < 0 ? r
		     : client_request(client, "cordon", make_request(devices, cordoned), NULL, err);
}

static int cordon_run(const struct command *self, int argc, char **argv)
{
	struct cordon_options options = { 0 };
	struct parse_devices devices;
	struct error err = { 0 };
	int status;
	const char *text = operand_read(self, argc, argv, &options,
					"write one GPU's UUID or index; allot ps lists them",
					&status);

	if (!text)
		return status;
	if (parse_devices(text, &devices, &err) < 0)
		return command_fail(self, &err, EXIT_USAGE);
	if (devices.all || devices.count != 1) {
		error_set(&err, EINVAL, "'%.60s': must be one GPU", text);
		return command_fail(self, &err, EXIT_USAGE);
	}
	if (cordon(&options, &devices, strcmp(self->name, "cordon") == 0, &err) < 0)
		return command_fail(self, &err, EXIT_REFUSED);
	return 0;
}

const struct command command_cordon = {
	.name = "cordon",
	.usage = "GPU [OPTION...]",
	.summary = "let a GPU take no new tenants",
	.about = "Lets a GPU, by its UUID or index, take no new tenants, until allot uncordon. "
		 "Those "
		 "on it go\n"
		 "on. For root and members of group allot.",
	.rows = rows,
	.operand = OPERAND_OTHER,
	.run = cordon_run,
};

const struct command command_uncordon = {
	.name = "uncordon",
	.usage = "GPU [OPTION...]",
	.summary = "let a GPU take tenants again",
	.about = "Lets a GPU take new tenants again, after allot cordon or after a fault that its "
		 "driver\n"
		 "reported (allot ps: unhealthy).",
	.rows = rows,
	.operand = OPERAND_OTHER,
	.run = cordon_run,
};
