#include <errno.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/format.h"
#include "cli/target.h"
#include "cli/terms.h"

struct set_options {
	struct terms terms;
	struct daemon_target target;
};

static const struct option_row rows[] = {
	TERM(struct set_options, "--gpu", "I", option_devices, gpu,
	     .help = "change only this GPU, by index as in allot ps. Needed\n"
		     "if the tenant has several GPUs"),
	TERMS_SHARE_ROWS(struct set_options, TERMS_CHANGED),
	TERM(struct set_options, "--on-full", "fail|wait", option_choice, on_full,
	     .offered = "fail wait",
	     .help = "behaviour when GPU memory is short. With fail, its\n"
		     "--memory is reserved, which is refused if it is not\n"
		     "free. With wait, its allocations wait for free memory"),
	TERMS_VIOLATION_ROW(struct set_options, TERMS_CHANGED),
	TARGET_ROWS(struct set_options),
	OPTION_END,
};

static int check(const void *data, const char *name, struct error *err)
{
	const struct terms *terms = &((const struct set_options *)data)->terms;
	int r = parse_name(name, err);

	if (r < 0)
		return r;
	if (!terms_have_devices(terms) && !terms->elastic && !terms->on_violation &&
	    !terms->on_full && !terms->priority.is_set)
		return error_set(err, EINVAL,
				 "nothing to set; write for example: allot set NAME --memory 4GiB");
	return terms_check_change(terms, err);
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

static int set_tenant(const struct command *self, void *data, char *name, struct error *err)
{
	const struct set_options *options = data;
	const struct terms *terms = &options->terms;
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *hello = NULL, *reply = NULL;
	struct selection selection;
	int r = daemon_find(&options->target, &client, err);

	if (r < 0)
		return error_add(err, r, "'%s'", name);
	json_t *body = json_pack("{s:s}", "name", name);
	if (terms_have_devices(terms)) {
		r = terms_select(terms, client, &hello, &selection, err);
		if (r >= 0)
			json_object_set_new(body, "devices", terms_make_devices(terms, &selection));
	}
	if (r < 0) {
		json_decref(body);
		return r;
	}
	terms_add(terms, body);
	r = client_request(client, "set", body, &reply, err);
	if (r < 0)
		return r;
	client_print_warnings("set", reply);
	if (terms->priority.is_set)
		printf("%s: priority %lld\n", name, (long long)terms->priority.value);
	if (terms->on_full)
		printf("%s: on-full %s\n", name, terms->on_full);
	print_devices(name, json_object_get(reply, "devices"));
	return 0;
}

const struct command command_set = {
	.name = "set",
	.usage = "NAME [OPTION...]",
	.summary = "change the memory quota, share or priority of a running tenant",
	.about = "Changes what a running tenant may use. Options that are not given stay as they\n"
		 "are.",
	.rows = rows,
	.operand = OPERAND_TENANT,
	.options_size = sizeof(struct set_options),
	.wanted = WANTED_TENANT,
	.check = check,
	.act = set_tenant,
};
