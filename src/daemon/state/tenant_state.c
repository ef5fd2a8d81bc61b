#include "daemon/state/tenant_state.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/state/elastic_terms.h"
#include "daemon/state/use.h"
#include "daemon/util/json.h"
#include "daemon/util/state_file.h"

json_t *slots_to_json(const struct slots *slots)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		if (slots_has(slots, i))
			json_array_append_new(list, json_integer(i));
	return list;
}

static json_t *device_to_json(const struct tenant_device_terms *d, uint64_t granted_bytes)
{
	const struct promise *p = &d->promise;
	json_t *json = json_pack("{s:s, s:b, s:I, s:f, s:b, s:f, s:I, s:I}", "uuid",
				 d->card->info.uuid_text, "memory_given", p->memory_given,
				 "memory_quota_bytes", (json_int_t)p->quota_bytes, "cores_pct",
				 p->cores_pct, "limit_given", p->limit_given, "cores_limit_pct",
				 p->limit_pct, "memory_reserve_bytes", (json_int_t)p->reserve_bytes,
				 "memory_granted_bytes", (json_int_t)granted_bytes);
	if (slots_count(&d->slots))
		json_object_set_new(json, "slots", slots_to_json(&d->slots));
	return json;
}

static json_t *process_to_json(int pid, uint64_t start_time, const uint64_t *used, unsigned count)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(list, json_integer((json_int_t)used[i]));
	return json_pack("{s:i, s:I, s:o}", "pid", pid, "start_time", (json_int_t)start_time,
			 "memory_used_bytes", list);
}

/* Includes the previous daemon's processes that have not registered yet, with their usage from the old state file. */
static json_t *processes_to_json(struct tenant *tenant, uint64_t *ret_used)
{
	json_t *list = json_array();
	unsigned count = tenant->terms.device_count;
	uint64_t sum = 0;
	for (unsigned i = 0; i < tenant->slot_limit; i++) {
		struct process *p = tenant->process[i];
		uint64_t used[REGION_MAX_DEVICES];
		if (!p)
			continue;
		for (unsigned d = 0; d < count; d++)
			sum += used[d] = process_used_bytes(p, d);
		json_array_append_new(list, process_to_json(p->pid, p->start_time, used, count));
	}
	for (struct old_process *o = tenant->old; o; o = o->next)
		if (!o->registered)
			json_array_append_new(list, process_to_json(o->pid, o->start_time,
								    o->used_bytes, count));
	*ret_used = sum;
	return list;
}

static struct memory_wait_past past_of(const struct tenant *tenant)
{
	const struct memory_wait *a = &tenant->memory_wait;
	struct memory_wait_past past = a->past;
	if (a->state == MEMORY_WAIT_QUEUED)
		past = (struct memory_wait_past){ .arrival = a->arrival, .since_ns = a->since_ns };
	memcpy(past.granted_bytes, a->granted_bytes, sizeof(past.granted_bytes));
	return past;
}

static json_t *tenant_to_json(struct tenant *tenant, uint64_t *ret_used)
{
	const struct tenant_terms *t = &tenant->terms;
	struct memory_wait_past past = past_of(tenant);
	json_t *devices = json_array();
	for (unsigned i = 0; i < t->device_count; i++)
		json_array_append_new(devices, device_to_json(&t->device[i], past.granted_bytes[i]));
	json_t *json = json_pack(
		"{s:i, s:s, s:s, s:I, s:I, s:b, s:b, s:i, s:s, s:o, s:o, s:o, s:o, s:I, "
		"s:f, s:I, s:I, s:I, s:b, s:s}",
		"version", TENANT_STATE_VERSION, "id", t->id, "name", t->name, "uid",
		(json_int_t)t->uid, "epoch", (json_int_t)tenant->node->epoch, "hold", t->hold,
		"paused", t->paused, "priority", t->priority, "on_full", on_full_name(t->on_full),
		"devices", devices, "processes", processes_to_json(tenant, ret_used),
		"host_memory_quota_bytes",
		t->has_host_quota ? json_integer((json_int_t)t->host_quota_bytes) : json_null(),
		"elastic", elastic_choice_to_json(t->elastic), "wait_timeout_ns",
		(json_int_t)t->wait_timeout_ns, "use_s",
		use_ns(tenant, clock_now_ns()) / (double)NSEC_PER_SEC, "wait_arrival",
		(json_int_t)past.arrival, "wait_since_ns", (json_int_t)past.since_ns,
		"swap_arena_bytes", (json_int_t)t->swap_arena_bytes, "swapped_out", t->swapped_out,
		"on_violation", on_violation_name(t->on_violation));
	if (t->sharing.way == SHARING_SPACE)
		json_object_set_new(json, "group", json_string(t->sharing.group));
	if (t->is_retired)
		json_object_set_new(json, "retired", json_true());
	/* Save the command only if no other client holds the tenant: only then does the tenant end with its command. */
	if (tenant->command_pid && tenant->holders <= 1)
		json_object_set_new(json, "command",
				    json_pack("{s:i, s:I}", "pid", tenant->command_pid,
					      "start_time", (json_int_t)tenant->command_start));
	if (tenant->command_cgroup)
		json_object_set_new(json, "command_cgroup", json_string(tenant->command_cgroup));
	/* If the store of claims is lost, the daemon makes the claim again from this member of the JSON. */
	if (*t->claim.key)
		json_object_set_new(json, "claim",
				    json_pack("{s:s, s:b, s:b}", "key", t->claim.key,
					      "while_wanted", t->claim.while_wanted, "uncontrolled",
					      t->claim.is_uncontrolled));
	return json;
}

int tenant_state_save(struct tenant *tenant, bool sync, struct error *err)
{
	uint64_t used;
	char path[NODE_PATH_MAX];
	cleanup_json json_t *json = tenant_to_json(tenant, &used);
	tenant_path(tenant, "tenant.json", path);
	int r = state_file_write(path, json, JSON_INDENT(1), TENANT_STATE_MAX_BYTES, sync, err);
	if (r < 0)
		return error_add(err, r, "tenant '%s'", tenant->terms.name);
	tenant->unsaved = false;
	tenant->save_failed = false;
	tenant->saved_used_bytes = used;
	return 0;
}

void tenant_state_save_or_retry(struct tenant *tenant, bool sync, const char *risk)
{
	struct error err = { 0 };
	if (tenant_state_save(tenant, sync, &err) >= 0)
		return;
	log_error("%s (%s; trying again)", err.text, risk);
	/* tenant_state_save_due() tries again, and logs no further failure. */
	tenant->save_failed = true;
	tenant_save_soon(tenant);
}

void tenant_state_save_due(void *data, uint32_t events)
{
	struct node *node = data;
	struct tenant *t;
	bool failed = false;
	TAILQ_FOREACH(t, &node->tenants, link) {
		struct error err = { 0 };
		if (!t->unsaved || tenant_state_save(t, false, &err) >= 0)
			continue;
		failed = true;
		if (!t->save_failed)
			log_error("%s (the last saved state is kept; trying again)", err.text);
		t->save_failed = true;
	}
	if (failed)
		loop_arm(node->save_timer, NSEC_PER_SEC, 0);
}

void tenant_state_check_usage(struct tenant *tenant)
{
	uint64_t used = 0;
	for (unsigned i = 0; i < tenant->slot_limit; i++)
		for (unsigned d = 0; tenant->process[i] && d < tenant->terms.device_count; d++)
			used += process_used_bytes(tenant->process[i], d);
	if (used != tenant->saved_used_bytes)
		tenant_save_soon(tenant);
}
