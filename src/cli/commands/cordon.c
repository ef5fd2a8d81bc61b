/* allot cordon and allot uncordon: a GPU takes no new tenants, or again; those on it go on. */
#include <errno.h>
#include <string.h>

#include "cli/command.h"
#include "cli/operand.h"
#include "cli/selection.h"
#include "cli/target.h"

struct cordon_options {
	struct daemon_target target;
};

static const struct option_row rows[] = {
	TARGET_ROWS(struct cordon_options),
	OPTION_END,
};

/* *ret is of the daemon's *ret_hello. */
static int find_gpu(struct client *client, const struct parse_devices *wanted, json_t **ret_hello,
		    const json_t **ret, struct error *err)
{
	struct selection all, chosen;
	int r = client_request(client, "hello", NULL, ret_hello, err);

	if (r < 0)
		return r;
	selection_all(json_object_get(*ret_hello, "devices"), &all);
	r = selection_choose(&all, wanted, NULL, &chosen, err);
	if (r == 0)
		*ret = chosen.device[0];
	return r;
}

static int cordon(const struct cordon_options *options, const struct parse_devices *devices,
		  bool cordoned, struct error *err)
{
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *hello = NULL;
	const json_t *gpu = NULL;
	int r = daemon_find(&options->target, &client, err);

	if (r == 0)
		r = find_gpu(client, devices, &hello, &gpu, err);
	if (r < 0)
		return r;
	return client_request(client, "cordon",
			      json_pack("{s:b, s:I}", "cordoned", cordoned, "index",
					device_index(gpu)),
			      NULL, err);
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
		error_set(&err, EINVAL, "'%.60s': name one GPU only", text);
		return command_fail(self, &err, EXIT_USAGE);
	}
	if (cordon(&options, &devices, strcmp(self->name, "cordon") == 0, &err) < 0)
		return command_fail(self, &err, EXIT_REFUSED);
	return 0;
}

const struct command command_cordon = {
	.name = "cordon",
	.usage = "GPU [OPTION...]",
	.summary = "stop a GPU from taking new tenants",
	.about = "Stops a GPU, given by index or UUID, from taking new tenants until allot\n"
		 "uncordon. Tenants that are on it go on. Only root and members of the group\n"
		 "allot may do that.",
	.rows = rows,
	.operand = OPERAND_GPU,
	.run = cordon_run,
};

const struct command command_uncordon = {
	.name = "uncordon",
	.usage = "GPU [OPTION...]",
	.summary = "let a GPU take new tenants again",
	.about = "Lets a GPU, given by index or UUID, take new tenants again: after allot cordon,\n"
		 "or after the driver reported a fault (allot ps shows it as unhealthy). Only\n"
		 "root and members of the group allot may do that.",
	.rows = rows,
	.operand = OPERAND_GPU,
	.run = cordon_run,
};
