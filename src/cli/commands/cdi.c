/* A device of `allot cdi`: a claim in allotd with its own tenant, and a CDI file that tells engines what to inject. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cdi/cdi_spec.h"
#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/target.h"
#include "cli/terms.h"

#define KEY_PREFIX "cdi/"
#define WANTED_NAME "write one name, of a device that containers ask for"

struct cdi_options {
	struct daemon_target target;
	struct terms terms;
	const char *output;
	bool force;
	bool json;
};

#define OUTPUT_ROW \
	OPTION("--output", OPTION_VALUE_REQUIRED, "DIR", option_text, struct cdi_options, output, \
	       .help = "the directory of the CDI file, allot-NAME.json\n(default: " CDI_DIR ")")

static const struct option_row create_rows[] = {
	TERM(struct cdi_options, "--gpu", "LIST", option_devices, gpu,
	     .help = "the GPUs its containers use: an index, a UUID, a list\n"
		     "such as 0,1, or all (default: the GPU with the least\n"
		     "memory promised)"),
	TERMS_SHARE_ROWS(struct cdi_options, TERMS_MADE),
	TERMS_PLACE_ROWS(struct cdi_options),
	OUTPUT_ROW,
	TARGET_ROWS(struct cdi_options),
	OPTION_END,
};

static const struct option_row cards_rows[] = {
	OUTPUT_ROW,
	TARGET_ROWS(struct cdi_options),
	OPTION_END,
};

static const struct option_row remove_rows[] = {
	OPTION("--force", OPTION_VALUE_NONE, NULL, option_flag, struct cdi_options, force,
	       .help = "remove it even while a container uses it: the\n"
		       "container's processes get no more GPU memory, and new\n"
		       "processes no GPU"),
	OUTPUT_ROW,
	TARGET_ROWS(struct cdi_options),
	OPTION_END,
};

static const struct option_row list_rows[] = {
	OPTION("--json", OPTION_VALUE_NONE, NULL, option_flag, struct cdi_options, json,
	       .help = "print JSON"),
	TARGET_ROWS(struct cdi_options),
	OPTION_END,
};

static const char *output_dir(const struct cdi_options *options)
{
	return options->output ? options->output : CDI_DIR;
}

static int make_request(struct client *client, const struct cdi_options *options, const char *name,
			json_t **ret, struct error *err)
{
	cleanup_json json_t *hello = NULL;
	struct selection selection;
	int r = terms_select(&options->terms, client, &hello, &selection, err);

	if (r < 0)
		return r;
	*ret = json_pack("{s:s, s:o}", "name", name, "devices",
			 terms_make_devices(&options->terms, &selection));
	terms_add(&options->terms, *ret);
	return 0;
}

static int write_spec(const struct cdi_options *options, const char *name, const json_t *reply,
		      char path[PATHS_MAX], struct error *err)
{
	cleanup_json json_t *spec = NULL;
	const char *dir = output_dir(options);
	struct error why = { 0 };
	int r = cdi_spec_path(dir, name, path, err);

	if (r >= 0)
		r = cdi_spec_make(CDI_KIND, name, json_object_get(reply, "injection"), &spec, err);
	if (r < 0)
		return r;
	r = cdi_spec_write(dir, path, spec, &why);
	if (r < 0)
		error_set(err, -r,
			  "%s; run this as root, or choose another directory with --output DIR",
			  why.text);
	return r;
}

/* Without --run-dir, starts a private daemon if none runs. A private daemon runs as long as it has a tenant. */
static int connect_daemon(const struct cdi_options *options, struct client **ret, struct error *err)
{
	return options->target.run_dir ? daemon_find(&options->target, ret, err)
				       : daemon_find_or_start(&options->target, ret, err);
}

/* Removes a claim whose CDI file could not be written. If that fails too, extends the file's error in `err`. */
static void release_claim(struct client *client, const char *name, struct error *err)
{
	struct error file = *err, why = { 0 };

	if (client_request(client, "release", json_pack("{s:s}", "name", name), NULL, &why) < 0)
		error_set(err, file.code,
			  "%s. The daemon could not remove the device (%s): remove it with allot cdi remove %s",
			  file.text, why.text, name);
}

/* Prints the GPUs too, because the user must also give the container NVIDIA's own devices of these GPUs. */
static void print_created(const char *name, const json_t *reply, const char *path)
{
	json_t *devices = json_object_get(reply, "devices"), *device;
	size_t i;

	printf("%s=%s: GPU%s", CDI_KIND, name, json_array_size(devices) == 1 ? "" : "s");
	json_array_foreach(devices, i, device)
	{
		printf("%s %lld", i ? "," : "", device_index(device));
	}
	printf(", %s\n", path);
}

static int create(struct client *client, const struct cdi_options *options, const char *name,
		  struct error *err)
{
	cleanup_json json_t *reply = NULL;
	char path[PATHS_MAX];
	json_t *body = NULL;
	int r = make_request(client, options, name, &body, err);

	if (r >= 0)
		r = client_request(client, "claim", body, &reply, err);
	if (r < 0)
		return r;
	client_print_warnings("cdi create", reply);
	r = write_spec(options, name, reply, path, err);
	if (r < 0) {
		release_claim(client, name, err);
		return r;
	}
	print_created(name, reply, path);
	return 0;
}

static int check_name(const void *options, const char *name, struct error *err)
{
	return cdi_check_name(name, err);
}

static int check_new(const void *options, const char *name, struct error *err)
{
	int r = cdi_check_name(name, err);
	return r < 0 ? r : terms_check(&((const struct cdi_options *)options)->terms, err);
}

static int create_device(const struct command *self, void *options, char *name, struct error *err)
{
	cleanup_client struct client *client = NULL;
	int r = connect_daemon(options, &client, err);

	return r < 0 ? r : create(client, options, name, err);
}

/* The device "gpu0" is the part of GPU 0 that is promised to no tenant. Existing devices stay as they are. */
static int create_cards(const struct command *self, void *data, char *operand, struct error *err)
{
	const struct cdi_options *options = data;
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *hello = NULL;
	json_t *card;
	size_t i;
	int r = connect_daemon(options, &client, err);

	if (r >= 0)
		r = client_request(client, "hello", json_object(), &hello, err);
	if (r < 0)
		return r;
	json_array_foreach(json_object_get(hello, "devices"), i, card)
	{
		struct cdi_options one = *options;
		char name[32];

		one.terms.gpu.is_set = true;
		one.terms.gpu.devices.count = 1;
		one.terms.gpu.devices.item[0].index = (uint32_t)device_index(card);
		snprintf(name, sizeof(name), "gpu%u", one.terms.gpu.devices.item[0].index);
		r = create(client, &one, name, err);
		if (r == -EEXIST)
			printf("%s=%s: exists already, left as it is\n", CDI_KIND, name);
		else if (r < 0)
			return r;
	}
	return 0;
}

/* Removes the claim first. If the daemon refuses to remove the claim, the device keeps its file. */
static int remove_device(const struct command *self, void *data, char *name, struct error *err)
{
	const struct cdi_options *options = data;
	cleanup_client struct client *client = NULL;
	char path[PATHS_MAX];
	int r = cdi_spec_path(output_dir(options), name, path, err);

	if (r >= 0)
		r = daemon_find(&options->target, &client, err);
	if (r < 0)
		return r;
	cleanup_json json_t *reply = NULL;
	r = client_request(client, "release",
			   json_pack("{s:s, s:b}", "name", name, "force", options->force), &reply,
			   err);
	if (r < 0 && r != -ENOENT)
		return r;
	if (json_is_true(json_object_get(reply, "ending")))
		fprintf(stderr,
			"allot: cdi remove: processes still use '%s': its GPU memory is free when they have ended\n",
			name);
	/* Remove the file even if the claim is gone: a file without a claim would start containers without a tenant. */
	int unlink_error = unlink(path) < 0 ? errno : 0;
	if (unlink_error && unlink_error != ENOENT)
		return error_set_errno(err, unlink_error, "%s", path);
	if (r == -ENOENT && !unlink_error)
		fprintf(stderr,
			"allot: cdi remove: the daemon no longer had a device '%s'; removed its file %s\n",
			name, path);
	else if (r >= 0 && unlink_error)
		fprintf(stderr,
			"allot: cdi remove: the device's file %s does not exist; if it was made with --output, remove it there\n",
			path);
	return r == -ENOENT && !unlink_error ? 0 : r;
}

static const char *name_of(const json_t *claim)
{
	const char *key = json_string_value(json_object_get(claim, "key"));

	return key && !strncmp(key, KEY_PREFIX, strlen(KEY_PREFIX)) ? key + strlen(KEY_PREFIX)
								    : NULL;
}

static void print_device(const char *name, const json_t *claim, const json_t *device)
{
	const json_t *index = json_object_get(device, "index");
	const json_t *memory = json_object_get(device, "memory_bytes");
	char bytes[FORMAT_MAX] = "unpromised", gpu[16] = "-", cores[FORMAT_MAX], limit[FORMAT_MAX];
	const char *why = json_string_or(claim, "parked", "");

	if (json_is_integer(index))
		snprintf(gpu, sizeof(gpu), "%lld", (long long)json_integer_value(index));
	if (json_is_integer(memory))
		format_bytes((uint64_t)json_integer_value(memory), bytes);
	format_asked_pct(json_number_value(json_object_get(device, "cores_pct")), cores);
	format_asked_pct(json_number_value(json_object_get(device, "cores_limit_pct")), limit);
	printf("%-24s %3s  %10s  %5s  %5s  %9lld  %s\n", name, gpu, bytes, cores, limit,
	       (long long)json_integer_value(json_object_get(claim, "processes")), why);
}

static void print_table(const json_t *claims)
{
	const json_t *claim, *device;
	size_t i, j;

	printf("%-24s %3s  %10s  %5s  %5s  %9s\n", "NAME", "GPU", "MEMORY", "CORES", "LIMIT",
	       "PROCESSES");
	json_array_foreach((json_t *)claims, i, claim)
	{
		const json_t *devices = json_object_get(claim, "devices");

		json_array_foreach((json_t *)devices, j, device)
		{
			print_device(name_of(claim), claim, device);
		}
	}
}

static int list(const struct command *self, void *data, char *operand, struct error *err)
{
	const struct cdi_options *options = data;
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *reply = NULL, *own = json_array();
	json_t *claim;
	size_t i;
	int r = daemon_find(&options->target, &client, err);

	if (r >= 0)
		r = client_request(client, "claims", json_object(), &reply, err);
	if (r < 0)
		return r;
	json_array_foreach(json_object_get(reply, "claims"), i, claim)
	{
		if (name_of(claim))
			json_array_append(own, claim);
	}
	if (!options->json) {
		print_table(own);
		return 0;
	}
	return command_print_json(own, JSON_INDENT(1), err);
}

static const struct command actions[] = {
	{ .name = "cdi create",
	  .usage = "NAME [OPTION...]",
	  .summary = "make a device for containers: allot.dev/gpu=NAME",
	  .rows = create_rows,
	  .operand = OPERAND_OTHER,
	  .options_size = sizeof(struct cdi_options),
	  .wanted = WANTED_NAME,
	  .check = check_new,
	  .act = create_device },
	{ .name = "cdi gpus",
	  .usage = "[OPTION...]",
	  .summary = "make a device of each GPU: allot.dev/gpu=gpu0, what is left of GPU 0",
	  .rows = cards_rows,
	  .options_size = sizeof(struct cdi_options),
	  .act = create_cards },
	{ .name = "cdi remove",
	  .usage = "NAME [OPTION...]",
	  .summary = "remove a device, and its file",
	  .rows = remove_rows,
	  .operand = OPERAND_OTHER,
	  .options_size = sizeof(struct cdi_options),
	  .wanted = WANTED_NAME,
	  .check = check_name,
	  .act = remove_device },
	{ .name = "cdi list",
	  .usage = "[OPTION...]",
	  .summary = "list the devices",
	  .rows = list_rows,
	  .options_size = sizeof(struct cdi_options),
	  .act = list },
	{ .name = NULL },
};

static int cdi_run(const struct command *self, int argc, char **argv)
{
	struct error err = { 0 };

	if (argc > 0 && strcmp(argv[0], "--help") == 0)
		return command_help(self);
	const char *name = argc > 0 ? argv[0] : "";
	if (strcmp(name, "cards") == 0)
		name = "gpus"; /* the name in version 0.1.0 */
	for (size_t i = 0; argc > 0 && actions[i].name; i++)
		if (strcmp(name, actions[i].name + strlen("cdi ")) == 0)
			return command_start(&actions[i], argc - 1, argv + 1);
	if (argc > 0)
		error_set(&err, EINVAL, "'%.40s': must be create, gpus, remove or list", argv[0]);
	else
		error_set(&err, EINVAL, "an action is missing: write create, gpus, remove or list");
	return command_fail(self, &err, EXIT_USAGE);
}

static const struct option_row no_rows[] = { OPTION_END };

const struct command command_cdi = {
	.name = "cdi",
	.usage = "create|gpus|remove|list [OPTION...]",
	.summary = "devices with a part of a GPU, for podman, docker and containerd",
	.about = "Makes, lists and removes devices for containers. A device is a tenant with a\n"
		 "part of a GPU, and a file in " CDI_DIR " by which container engines find it. All\n"
		 "containers with one device are one tenant. With gpus, each GPU gets a device\n"
		 "of what is left of it.\n"
		 "\n"
		 "Give a container NVIDIA's own device of the same GPU too, which brings the\n"
		 "driver. For a device web on GPU 0:\n"
		 "\n"
		 "  podman run --device nvidia.com/gpu=0 --device allot.dev/gpu=web IMAGE\n"
		 "\n"
		 "allot cdi create --help has the options.",
	.rows = no_rows,
	.actions = actions,
	.run = cdi_run,
};
