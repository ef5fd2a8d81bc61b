/* allot set: changes a live tenant's quotas. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/format.h"
#include "cli/operand.h"
#include "cli/selection.h"
#include "cli/target.h"

struct set_options {
	struct option_devices gpu;
	struct option_size memory;
	struct option_percent cores;
	struct option_percent cores_limit;
	const char *elastic;
	const char *on_violation;
	struct option_int priority;
	struct daemon_target target;
};

static const struct option_row rows[] = {
	OPTION("--gpu", OPTION_VALUE_REQUIRED, "I", option_devices, struct set_options, gpu,
	       .help = "on this GPU, as allot ps counts them (needed when the\ntenant has several)"),
	OPTION("--memory", OPTION_VALUE_REQUIRED, "SIZE", option_size, struct set_options, memory,
	       .help = "GPU memory it may hold, such as 4GiB"),
	OPTION("--cores", OPTION_VALUE_REQUIRED, "PERCENT", option_percent, struct set_options,
	       cores, .help = "share of GPU time that is guaranteed, such as 30"),
	OPTION("--cores-limit", OPTION_VALUE_REQUIRED, "PERCENT", option_percent, struct set_options,
	       cores_limit, .help = "share it may reach when others leave time unused"),
	OPTION("--elastic", OPTION_VALUE_REQUIRED, "on|off", option_choice, struct set_options,
	       elastic, .offered = "on off",
	       .help = "whether it may use what others leave unused, on all of\nits GPUs"),
	OPTION("--on-violation", OPTION_VALUE_REQUIRED, "WHAT", option_choice, struct set_options,
	       on_violation, .offered = "report freeze end",
	       .help = "what is done with a process of it that gets round the\nlibrary: report, "
		       "freeze or end"),
	OPTION("--priority", OPTION_VALUE_REQUIRED, "N", option_int, struct set_options, priority,
	       .min = -100, .max = 100, .help = "-100 to 100; higher may interrupt lower"),
	TARGET_ROWS(struct set_options),
	OPTION_END,
};

static bool changes_devices(const struct set_options *options)
{
	return options->memory.is_set || options->cores.is_set || options->cores_limit.is_set;
}

static int check_options(const struct set_options *options, struct error *err)
{
	if (!changes_devices(options) && !options->elastic && !options->on_violation &&
	    !options->priority.is_set)
		return error_set(err, EINVAL,
				 "nothing to set; write for example: allot set NAME --memory 4GiB");
	if (options->cores.is_set && options->cores_limit.is_set &&
	    options->cores_limit.pct < options->cores.pct)
		return error_set(err, EINVAL,
				 "--cores-limit: '%g': less than --cores %g; write %g to 100, or leave "
				 "it out",
				 options->cores_limit.pct, options->cores.pct, options->cores.pct);
	return 0;
}

static json_t *make_device(const struct set_options *options, const json_t *named)
{
	json_t *device = json_object();

	if (named)
		json_object_set_new(device, "index", json_integer(device_index(named)));
	if (options->memory.is_set)
		json_object_set_new(device, "memory_bytes",
				    json_integer((json_int_t)options->memory.bytes));
	if (options->cores.is_set)
		json_object_set_new(device, "cores_pct", json_real(options->cores.pct));
	if (options->cores_limit.is_set)
		json_object_set_new(device, "cores_limit_pct", json_real(options->cores_limit.pct));
	return device;
}

/* The request's "devices". */
static int make_devices(struct client *client, const struct set_options *options,
			json_t **ret_devices, struct error *err)
{
	cleanup_json json_t *hello = NULL;
	struct selection selection = { .count = 1 };
	json_t *devices;
	int r;

	if (options->gpu.is_set) {
		r = client_request(client, "hello", NULL, &hello, err);
		if (r < 0)
			return r;
		r = selection_make(json_object_get(hello, "devices"), NULL, &options->gpu.devices,
				   &selection, err);
		if (r < 0)
			return r;
	}
	devices = json_array();
	for (size_t i = 0; i < selection.count; i++)
		json_array_append_new(devices,
				      make_device(options, hello ? selection.device[i] : NULL));
	*ret_devices = devices;
	return 0;
}

static void print_devices(const char *name, const json_t *devices)
{
	size_t i;
	json_t *device;

	json_array_foreach((json_t *)devices, i, device)
	{
		const json_t *quota = json_object_get(device, "memory_quota_bytes");
		const json_t *cores = json_object_get(device, "cores_pct");
		const json_t *limit = json_object_get(device, "cores_limit_pct");
		char text[FORMAT_MAX];

		printf("%s: GPU %lld:", name, (long long)device_index(device));
		if (json_is_integer(quota)) {
			format_bytes((uint64_t)json_integer_value(quota), text);
			printf(" memory %s", text);
		}
		if (json_number_value(cores) > 0)
			printf(", cores %g %%", json_number_value(cores));
		if (json_is_number(limit))
			printf(", limit %g %%", json_number_value(limit));
		putchar('\n');
	}
}

static int set_tenant(const struct set_options *options, const char *name, struct error *err)
{
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *reply = NULL;
	json_t *devices = NULL, *body;
	int r = daemon_find(&options->target, &client, err);

	if (r < 0)
		return error_add(err, r, "'%s'", name);
	r = changes_devices(options) ? make_devices(client, options, &devices, err) : 0;
	if (r < 0)
		return r;
	body = json_pack("{s:s}", "name", name);
	if (devices)
		json_object_set_new(body, "devices", devices);
	if (options->on_violation)
		json_object_set_new(body, "on_violation", json_string(options->on_violation));
	if (options->elastic)
		json_object_set_new(body, "elastic",
				    json_boolean(strcmp(options->elastic, "on") == 0));
	if (options->priority.is_set)
		json_object_set_new(body, "priority", json_integer(options->priority.value));
	r = client_request(client, "set", body, &reply, err);
	if (r < 0)
		return r;
	client_print_warnings("set", reply);
	if (options->priority.is_set)
		printf("%s: priority %lld\n", name, (long long)options->priority.value);
	print_devices(name, json_object_get(reply, "devices"));
	return 0;
}

static int set_run(const struct command *self, int argc, char **argv)
{
	struct set_options options = { 0 };
	struct error err = { 0 };
	int status;
	const char *name = operand_read_tenant(self, argc, argv, &options, &status);

	if (!name)
		return status;
	if (check_options(&options, &err) < 0)
		return command_fail(self, &err, EXIT_USAGE);
	if (set_tenant(&options, name, &err) < 0)
		return command_fail(self, &err, EXIT_REFUSED);
	return 0;
}

const struct command command_set = {
	.name = "set",
	.usage = "NAME [OPTION...]",
	.summary = "change a running tenant's memory quota, share or priority",
	.rows = rows,
	.operand = OPERAND_TENANT,
	.run = set_run,
};
