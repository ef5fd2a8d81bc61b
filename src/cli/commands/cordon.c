#include <errno.h>
#include <string.h>

#include "cli/command.h"
#include "cli/selection.h"
#include "cli/target.h"

struct cordon_options {
	struct daemon_target target;
};

static const struct option_row rows[] = {
	TARGET_ROWS(struct cordon_options),
	OPTION_END,
};

/* *ret points into *ret_hello, which the caller frees. */
static int find_gpu(struct client *client, const struct parse_devices *wanted, json_t **ret_hello,
		    const json_t **ret, struct error *err)
{
	struct selection all, chosen;
	int r = client_request(client, "hello", json_object(), ret_hello, err);

	if (r < 0)
		return r;
	selection_all(json_object_get(*ret_hello, "devices"), &all);
	r = selection_choose(&all, wanted, NULL, &chosen, err);
	if (r == 0)
		*ret = chosen.device[0];
	return r;
}

static int check(const void *options, const char *text, struct error *err)
{
	struct parse_devices devices;
	int r = parse_devices(text, &devices, err);

	if (r >= 0 && (devices.all || devices.count != 1))
		r = error_set(err, EINVAL, "'%.60s': must name one GPU; allot ps lists them", text);
	return r;
}

static int cordon(const struct command *self, void *data, char *text, struct error *err)
{
	const struct cordon_options *options = data;
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *hello = NULL;
	struct parse_devices devices;
	const json_t *gpu = NULL;
	int r = parse_devices(text, &devices, err);

	if (r == 0)
		r = daemon_find(&options->target, &client, err);
	if (r == 0)
		r = find_gpu(client, &devices, &hello, &gpu, err);
	if (r < 0)
		return r;
	return client_request(client, "cordon",
			      json_pack("{s:b, s:I}", "cordoned", !strcmp(self->name, "cordon"),
					"index", device_index(gpu)),
			      NULL, err);
}

#define CORDON_PARTS \
	.usage = "GPU [OPTION...]", .rows = rows, .operand = OPERAND_GPU, \
	.options_size = sizeof(struct cordon_options), \
	.wanted = "write one GPU's UUID or index; allot ps lists them", .check = check, \
	.act = cordon

const struct command command_cordon = {
	.name = "cordon",
	.summary = "stop a GPU from taking new tenants",
	.about = "Stops a GPU, given by index or UUID, from taking new tenants until allot\n"
		 "uncordon. Tenants that are on it go on. Only root and members of the group\n"
		 "allot may do that.",
	CORDON_PARTS,
};

const struct command command_uncordon = {
	.name = "uncordon",
	.summary = "let a GPU take new tenants again",
	.about = "Lets a GPU, given by index or UUID, take new tenants again: after allot cordon,\n"
		 "or after the driver reported a fault (allot ps shows it as unhealthy). Only\n"
		 "root and members of the group allot may do that.",
	CORDON_PARTS,
};
