/* Reads a state file. If any value is invalid, nothing of the file is used. */
#include "daemon/state/tenant_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/state/elastic_terms.h"
#include "daemon/state/use.h"
#include "daemon/tasks/watch/use_state.h"
#include "daemon/util/json.h"
#include "daemon/util/state_file.h"

static int missing(struct error *err, const char *key)
{
	return error_set(err, EINVAL, "%s: missing", key);
}

/* Reads "slots", the parts of the card that the claim has (slots.h). If it is absent, there are none. */
static int slots_from_json(const json_t *json, struct slots *ret, struct error *err)
{
	json_t *list = NULL, *item;
	size_t i;
	int r = json_read_array(json, "slots", &list, err);
	if (r <= 0)
		return r;
	json_array_foreach(list, i, item)
	{
		json_int_t slot = json_is_integer(item) ? json_integer_value(item) : -1;
		if (slot < 0 || slot >= SLOTS_MAX)
			return error_set(err, EINVAL, "slots: must be numbers under %d", SLOTS_MAX);
		slots_add(ret, (unsigned)slot);
	}
	return 0;
}

/* Reads "claim". If it is absent, the tenant belongs to no claim. */
static int claim_from_json(const json_t *root, struct tenant_claim *ret, struct error *err)
{
	const json_t *json = json_object_get(root, "claim");
	const char *key = NULL;
	if (!json)
		return 0;
	if (json_read_string(json, "key", &key, err) <= 0 || !*key ||
	    strlen(key) >= sizeof(ret->key) ||
	    json_read_bool(json, "while_wanted", &ret->while_wanted, err) <= 0 ||
	    json_read_bool(json, "uncontrolled", &ret->is_uncontrolled, err) <= 0)
		return error_set(err, EINVAL,
				 "claim: key, while_wanted or uncontrolled is missing or invalid");
	strcpy(ret->key, key);
	return 0;
}

static int device_from_json(struct node *node, const json_t *json, struct tenant_device_terms *ret,
			    uint64_t *ret_granted, struct error *err)
{
	struct tenant_device_terms d = { 0 };
	const char *uuid_text = NULL;
	uint8_t uuid[16];
	int64_t quota = 0, reserve = 0, granted = 0;
	if (json_read_string(json, "uuid", &uuid_text, err) <= 0)
		return missing(err, "uuid");
	if (gpu_uuid_parse(uuid_text, uuid) < 0)
		return error_set(err, EINVAL, "uuid: must be a GPU's UUID");
	d.card = node_find_card(node, uuid);
	if (!d.card)
		return error_set(err, ENODEV, "the tenant's GPU %s is not on this node", uuid_text);
	if (json_read_int(json, "memory_quota_bytes", 0, INT64_MAX, &quota, err) <= 0 ||
	    json_read_bool(json, "memory_given", &d.promise.memory_given, err) <= 0 ||
	    json_read_bool(json, "limit_given", &d.promise.limit_given, err) <= 0 ||
	    json_read_number(json, "cores_pct", &d.promise.cores_pct, err) <= 0 ||
	    json_read_number(json, "cores_limit_pct", &d.promise.limit_pct, err) <= 0)
		return error_set(err, EINVAL,
				 "devices: memory_quota_bytes, memory_given, limit_given, "
				 "cores_pct or cores_limit_pct is missing or invalid");
	/* Files of older daemons lack these members. */
	if (json_read_int(json, "memory_reserve_bytes", 0, INT64_MAX, &reserve, err) < 0 ||
	    json_read_int(json, "memory_granted_bytes", 0, INT64_MAX, &granted, err) < 0)
		return error_set(err, EINVAL,
				 "devices: memory_reserve_bytes or memory_granted_bytes is "
				 "invalid");
	d.promise.quota_bytes = (uint64_t)quota;
	d.promise.reserve_bytes = (uint64_t)reserve;
	if (!(d.promise.cores_pct >= 0 && d.promise.limit_pct >= d.promise.cores_pct &&
	      d.promise.limit_pct > 0 && d.promise.limit_pct <= 100))
		return error_set(err, EINVAL,
				 "devices: cores_limit_pct must be at least cores_pct, above 0 "
				 "and at most 100");
	if (slots_from_json(json, &d.slots, err) < 0)
		return -EINVAL;
	*ret = d;
	*ret_granted = granted < quota ? (uint64_t)granted : (uint64_t)quota;
	return 0;
}

static int devices_from_json(struct node *node, const json_t *root, struct tenant_state *state,
			     struct error *err)
{
	struct tenant_terms *terms = &state->terms;
	json_t *list = NULL;
	if (json_read_array(root, "devices", &list, err) <= 0)
		return missing(err, "devices");
	size_t count = json_array_size(list);
	if (count == 0 || count > REGION_MAX_DEVICES)
		return error_set(err, EINVAL, "devices: must be a list of 1 to %d GPUs, not of %zu",
				 REGION_MAX_DEVICES, count);
	for (size_t i = 0; i < count; i++) {
		int r = device_from_json(node, json_array_get(list, i), &terms->device[i],
					 &state->past.granted_bytes[i], err);
		if (r < 0)
			return r;
		for (size_t j = 0; j < i; j++)
			if (terms->device[j].card == terms->device[i].card)
				return error_set(err, EINVAL, "devices: a GPU is listed twice");
	}
	terms->device_count = (unsigned)count;
	return 0;
}

static int process_from_json(const json_t *json, const struct tenant_terms *terms,
			     struct old_process *ret, struct error *err)
{
	struct old_process o = { .pidfd = -1 };
	int64_t pid = 0, start = 0;
	json_t *used = NULL;
	if (json_read_int(json, "pid", 1, INT32_MAX, &pid, err) <= 0 ||
	    json_read_int(json, "start_time", 0, INT64_MAX, &start, err) <= 0 ||
	    json_read_array(json, "memory_used_bytes", &used, err) <= 0 ||
	    json_array_size(used) != terms->device_count)
		return error_set(
			err, EINVAL,
			"processes: pid, start_time or memory_used_bytes is missing or invalid");
	o.pid = (int)pid;
	o.start_time = (uint64_t)start;
	for (unsigned i = 0; i < terms->device_count; i++) {
		json_int_t bytes = json_integer_value(json_array_get(used, i));
		uint64_t most = terms->device[i].card->info.memory_bytes;
		o.used_bytes[i] = bytes < 0 ? 0 : (uint64_t)bytes < most ? (uint64_t)bytes : most;
	}
	*ret = o;
	return 0;
}

static int processes_from_json(const json_t *root, struct tenant_state *state, struct error *err)
{
	json_t *list = NULL;
	if (json_read_array(root, "processes", &list, err) <= 0)
		return missing(err, "processes");
	if (json_array_size(list) > REGION_MAX_SLOTS)
		return error_set(err, EINVAL, "processes: must have at most %d entries",
				 REGION_MAX_SLOTS);
	for (size_t i = 0; i < json_array_size(list); i++) {
		cleanup_free struct old_process *o = calloc(1, sizeof(*o));
		if (!o)
			return error_set_errno(err, ENOMEM, "processes");
		int r = process_from_json(json_array_get(list, i), &state->terms, o, err);
		if (r < 0)
			return r;
		o->next = state->old;
		state->old = o;
		o = NULL;
	}
	return 0;
}

/* Reads "command", the process that holds the tenant. It is absent if unknown, or if other clients hold the tenant too. */
static int command_from_json(const json_t *root, struct tenant_state *state, struct error *err)
{
	const json_t *command = json_object_get(root, "command");
	int64_t pid = 0, start = 0;
	if (!command)
		return 0;
	if (!json_is_object(command) || json_read_int(command, "pid", 1, INT32_MAX, &pid, err) <= 0 ||
	    json_read_int(command, "start_time", 0, INT64_MAX, &start, err) <= 0)
		return error_set(err, EINVAL, "command: pid or start_time is missing or invalid");
	state->command_pid = (int)pid;
	state->command_start = (uint64_t)start;
	return 0;
}

static int command_cgroup_from_json(const json_t *root, struct tenant_state *state,
				    struct error *err)
{
	const char *path = NULL;
	int r = json_read_string(root, "command_cgroup", &path, err);
	if (r <= 0)
		return r;
	state->command_cgroup = strdup(path);
	return state->command_cgroup ? 0 : error_set_errno(err, ENOMEM, "command_cgroup");
}

/* Reads "group". If it is absent, the tenant is time-sliced. */
static int group_from_json(const json_t *root, struct sharing_choice *ret, struct error *err)
{
	const char *group = NULL;
	int r = json_read_string(root, "group", &group, err);
	if (r <= 0)
		return r;
	if (!*group || strlen(group) >= sizeof(ret->group))
		return error_set(err, EINVAL, "group: is empty or too long");
	ret->way = SHARING_SPACE;
	strcpy(ret->group, group);
	return 0;
}

static int terms_from_json(const json_t *root, const char *id, struct tenant_state *state,
			   struct error *err)
{
	struct tenant_terms *t = &state->terms;
	const char *text = NULL;
	int64_t version = 0, uid = 0, epoch = 0, priority = 0, host_bytes = 0, arena_bytes = 0;
	int64_t timeout_ns = 0, arrival = 0, since_ns = 0;
	double use_s = 0;
	if (json_read_int(root, "version", 0, INT32_MAX, &version, err) <= 0)
		return missing(err, "version");
	if (version != TENANT_STATE_VERSION)
		return error_set(err, EINVAL,
				 "has version %d, but this allotd reads version %d: another "
				 "version of allotd wrote the file",
				 (int)version, TENANT_STATE_VERSION);
	if (json_read_string(root, "id", &text, err) <= 0 || strcmp(text, id) != 0)
		return error_set(err, EINVAL, "id: must be '%s', the name of this file's directory",
				 id);
	snprintf(t->id, sizeof(t->id), "%s", id);
	if (json_read_string(root, "name", &text, err) <= 0 || parse_name(text, NULL) < 0)
		return error_set(err, EINVAL, "name: missing, or not valid as a tenant's name");
	snprintf(t->name, sizeof(t->name), "%s", text);
	if (json_read_int(root, "uid", 0, UINT32_MAX - 1, &uid, err) <= 0 ||
	    json_read_int(root, "epoch", 1, INT64_MAX, &epoch, err) <= 0 ||
	    json_read_int(root, "priority", INT32_MIN, INT32_MAX, &priority, err) <= 0 ||
	    json_read_bool(root, "hold", &t->hold, err) <= 0 ||
	    json_read_bool(root, "paused", &t->paused, err) <= 0 ||
	    json_read_string(root, "on_full", &text, err) <= 0 ||
	    on_full_parse(text, &t->on_full) < 0)
		return error_set(
			err, EINVAL,
			"uid, epoch, priority, hold, paused or on_full is missing or invalid");
	int r = elastic_choice_from_json(root, &t->elastic, err);
	if (r >= 0)
		r = claim_from_json(root, &t->claim, err);
	if (r < 0)
		return r;
	r = json_read_int(root, "host_memory_quota_bytes", 0, INT64_MAX, &host_bytes, err);
	if (r < 0)
		return r;
	t->has_host_quota = r > 0;
	r = json_read_int(root, "wait_timeout_ns", 0, INT64_MAX, &timeout_ns, err);
	if (r >= 0)
		r = json_read_number(root, "use_s", &use_s, err);
	if (r >= 0)
		r = json_read_int(root, "wait_arrival", 0, INT64_MAX, &arrival, err);
	if (r >= 0)
		r = json_read_int(root, "wait_since_ns", 0, INT64_MAX, &since_ns, err);
	if (r < 0)
		return r;
	t->wait_timeout_ns = (uint64_t)timeout_ns;
	state->past.arrival = (uint64_t)arrival;
	state->past.since_ns = (uint64_t)since_ns;
	state->use_ns = use_s > 0 && use_s < USE_MOST_S ? use_s * 1e9 : 0;
	/* Older files lack these members; each then keeps its default. */
	r = json_read_int(root, "swap_arena_bytes", 0, INT64_MAX, &arena_bytes, err);
	if (r >= 0)
		r = json_read_bool(root, "swapped_out", &t->swapped_out, err);
	if (r >= 0)
		r = json_read_bool(root, "retired", &t->is_retired, err);
	int has_choice = r < 0 ? r : json_read_string(root, "on_violation", &text, err);
	if (has_choice < 0)
		return has_choice;
	if (has_choice > 0 && on_violation_parse(text, &t->on_violation) < 0)
		return error_set(err, EINVAL, "on_violation: must be report, freeze or end");
	r = group_from_json(root, &t->sharing, err);
	if (r < 0)
		return r;
	t->swap_arena_bytes = (uint64_t)arena_bytes;
	t->host_quota_bytes = (uint64_t)host_bytes;
	t->uid = (uid_t)uid;
	t->priority = (int)priority;
	return 0;
}

int tenant_state_load(struct node *node, const char *path, const char *id, struct tenant_state *ret,
		      struct error *err)
{
	struct tenant_state state = { 0 };
	cleanup_json json_t *root = NULL;
	int r = state_file_read(path, TENANT_STATE_MAX_BYTES, &root, err);
	if (r < 0)
		return r;
	r = terms_from_json(root, id, &state, err);
	if (r >= 0)
		r = devices_from_json(node, root, &state, err);
	if (r >= 0)
		r = processes_from_json(root, &state, err);
	if (r >= 0)
		r = command_from_json(root, &state, err);
	if (r >= 0)
		r = command_cgroup_from_json(root, &state, err);
	if (r < 0) {
		tenant_state_free(&state);
		return error_add(err, r, "%s", path);
	}
	*ret = state;
	return 0;
}

void tenant_state_free(struct tenant_state *state)
{
	free(state->command_cgroup);
	while (state->old) {
		struct old_process *o = state->old;
		state->old = o->next;
		free(o);
	}
}
