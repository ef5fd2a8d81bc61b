#include "cli/terms.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/format.h"
#include "client/client.h"

int option_sharing(const struct option_row *row, const char *text, void *field, struct error *err)
{
	bool is_space;
	int r = parse_sharing(text, &is_space, err);

	if (r >= 0)
		*(const char **)field = text;
	return r;
}

/* The fields of struct terms, except `gpu` and `elastic`, and the member of a request that carries each field. */
static const struct member {
	const char *key;
	option_parser *parse; /* type of the field */
	size_t offset;
	bool is_device; /* member of an element of "devices" */
} members[] = {
	{ "memory_bytes", option_size, offsetof(struct terms, memory), true },
	{ "reserve_bytes", option_size, offsetof(struct terms, reserve), true },
	{ "cores_pct", option_percent, offsetof(struct terms, cores), true },
	{ "cores_limit_pct", option_percent, offsetof(struct terms, cores_limit), true },
	{ "wait_timeout_s", option_duration, offsetof(struct terms, wait_timeout) },
	{ "swap_arena_bytes", option_size, offsetof(struct terms, swap_arena) },
	{ "host_memory_bytes", option_size, offsetof(struct terms, host_memory) },
	{ "priority", option_int, offsetof(struct terms, priority) },
	{ "on_violation", option_choice, offsetof(struct terms, on_violation) },
	{ "on_full", option_choice, offsetof(struct terms, on_full) },
	{ "sharing", option_sharing, offsetof(struct terms, sharing) },
	{ "group", option_choice, offsetof(struct terms, group) },
};

static json_t *make_value(const struct member *m, const struct terms *terms)
{
	const void *field = (const char *)terms + m->offset;
	if (m->parse == option_size) {
		const struct option_size *size = field;
		return size->is_set ? json_integer((json_int_t)size->bytes) : NULL;
	}
	if (m->parse == option_percent) {
		const struct option_percent *percent = field;
		return percent->is_set ? json_real(percent->pct) : NULL;
	}
	if (m->parse == option_duration) {
		const struct option_duration *duration = field;
		return duration->is_set ? json_real((double)duration->ns / (double)NSEC_PER_SEC)
					: NULL;
	}
	if (m->parse == option_int) {
		const struct option_int *number = field;
		return number->is_set ? json_integer(number->value) : NULL;
	}
	const char *text = *(const char *const *)field;
	return text ? json_string(text) : NULL;
}

static void add_members(const struct terms *terms, bool is_device, json_t *object)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_t *value = members[i].is_device == is_device ? make_value(&members[i], terms)
								  : NULL;
		if (value)
			json_object_set_new(object, members[i].key, value);
	}
}

json_t *terms_make_devices(const struct terms *terms, const struct selection *selection)
{
	json_t *devices = json_array();
	for (size_t i = 0; i < (selection ? selection->count : 1); i++) {
		json_t *device = json_object();
		if (selection && selection->device[i])
			json_object_set_new(device, "index",
					    json_integer(device_index(selection->device[i])));
		add_members(terms, true, device);
		json_array_append_new(devices, device);
	}
	return devices;
}

void terms_add(const struct terms *terms, json_t *body)
{
	add_members(terms, false, body);
	if (terms->elastic)
		json_object_set_new(body, "elastic", json_boolean(!strcmp(terms->elastic, "on")));
}

bool terms_have_devices(const struct terms *terms)
{
	return terms->memory.is_set || terms->cores.is_set || terms->cores_limit.is_set;
}

int terms_select(const struct terms *terms, struct client *client, json_t **ret_hello,
		 struct selection *ret, struct error *err)
{
	*ret = (struct selection){ .count = 1 };
	if (!terms->gpu.is_set)
		return 0;
	int r = client_request(client, "hello", json_object(), ret_hello, err);
	return r < 0 ? r
		     : selection_make(json_object_get(*ret_hello, "devices"), NULL,
				      &terms->gpu.devices, ret, err);
}

static bool is_on_full(const struct terms *terms, const char *way)
{
	return terms->on_full && !strcmp(terms->on_full, way);
}

static int check_full(const struct terms *terms, struct error *err)
{
	bool waits = is_on_full(terms, "wait"), swaps = is_on_full(terms, "swap");
	const char *only_waiting = terms->reserve.is_set        ? "--reserve"
				   : terms->wait_timeout.is_set ? "--wait-timeout"
								: NULL;
	if ((waits || swaps) && !terms->memory.is_set)
		return error_set(err, EINVAL,
				 "--on-full: '%s': needs --memory, such as --memory 4GiB",
				 terms->on_full);
	if (terms->swap_arena.is_set && !swaps)
		return error_set(err, EINVAL, "--swap-arena: only with --on-full swap");
	if (only_waiting && !waits)
		return error_set(err, EINVAL, "%s: only with --on-full wait", only_waiting);
	if (terms->reserve.is_set && terms->reserve.bytes > terms->memory.bytes) {
		char reserve[FORMAT_MAX], memory[FORMAT_MAX];
		format_bytes(terms->reserve.bytes, reserve);
		format_bytes(terms->memory.bytes, memory);
		return error_set(err, EINVAL,
				 "--reserve: '%s' is more than --memory %s; write at most that",
				 reserve, memory);
	}
	return 0;
}

int terms_check_change(const struct terms *terms, struct error *err)
{
	if (terms->cores.is_set && terms->cores_limit.is_set &&
	    terms->cores_limit.pct < terms->cores.pct)
		return error_set(err, EINVAL,
				 "--cores-limit: '%g': less than --cores %g; write %g to 100, or "
				 "leave it out",
				 terms->cores_limit.pct, terms->cores.pct, terms->cores.pct);
	return 0;
}

int terms_check(const struct terms *terms, struct error *err)
{
	int r = terms_check_change(terms, err);
	if (r < 0)
		return r;
	if (terms->group && terms->sharing && !strcmp(terms->sharing, "time"))
		return error_set(err, EINVAL, "--group: '%s': only with --sharing space",
				 terms->group);
	return check_full(terms, err);
}
