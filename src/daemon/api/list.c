/* Handles the requests that only read: hello, list and tasks (docs/reference/protocol.md). */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/api/condition.h"
#include "daemon/api/request_handlers.h"
#include "daemon/api/session.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/elastic_terms.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/use.h"
#include "daemon/tasks/watch/gpu_watch.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/tasks/violation/violations.h"

static const char *const mode_names[] = { [ARBITER_IDLE] = "idle",
					  [ARBITER_FREE] = "free",
					  [ARBITER_LEASES] = "leases",
					  [ARBITER_PACED] = "paced",
					  [ARBITER_SLICED] = "sliced" };

static double rounded(double pct)
{
	return round(pct * 100) / 100;
}

static json_t *health_to_json(const struct card *card)
{
	char reason[HEALTH_REASON_MAX];
	bool is_bad = card->health.is_bad;
	health_reason(&card->health, reason);
	return json_pack("{s:s, s:o, s:o, s:b}", "health", is_bad ? "unhealthy" : "healthy",
			 "health_reason", is_bad ? json_string(reason) : json_null(),
			 "health_since_s",
			 card->health.since_ns ? json_real(card->health.since_s) : json_null(),
			 "cordoned", card->is_cordoned || card->is_cordoned_by_settings);
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

static json_t *card_to_json(struct node *node, struct card *card)
{
	struct promise_card p = node_promised(node, card, NULL);
	json_t *health = health_to_json(card);
	json_t *json = json_pack(
		"{s:i, s:s, s:s, s:s, s:I, s:o, s:f, s:I, s:f, s:I, s:I, s:I, s:I, s:f}", "index",
		card->index, "policy", config_policy_name(node->config.arbiter.policy), "uuid",
		card->info.uuid_text, "name", card->info.name, "memory_bytes",
		(json_int_t)card->info.memory_bytes, "memory_used_bytes",
		card->memory_known ? json_integer((json_int_t)card->memory_used_bytes) : json_null(),
		"busy_pct", rounded(arbitration_figures(card->arbitration).busy_pct),
		"promised_bytes", (json_int_t)p.promised_bytes, "promised_cores_pct",
		rounded(p.promised_cores_pct), "draining_bytes", (json_int_t)drain_bytes(card),
		"context_bytes", (json_int_t)card->context_bytes, "granted_bytes",
		(json_int_t)p.granted_bytes, "foreign_bytes", (json_int_t)card->foreign_bytes,
		"use_half_life_s", seconds(node->config.use_half_life_ns));
	json_object_update(json, health);
	json_decref(health);
	return json;
}

static json_t *cards_to_json(struct node *node)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < node->card_count; i++)
		json_array_append_new(list, card_to_json(node, &node->card[i]));
	return list;
}

static json_t *ms_or_null(uint64_t ns)
{
	return ns ? json_real(rounded((double)ns / NSEC_PER_MSEC)) : json_null();
}

/* Returns JSON null if no step ended in the time that the figures cover (step_window.h). */
static json_t *steps_to_json(const struct step_figures *s)
{
	if (!s->is_known)
		return json_null();
	return json_pack("{s:f, s:o, s:o}", "per_second", round(100 * s->per_second) / 100,
			 "p50_ms", ms_or_null(s->p50_ns), "p99_ms", ms_or_null(s->p99_ns));
}

/* Returns null for a tenant that takes turns instead of sharing the card by space. */
static json_t *pace_to_json(const struct arbiter_pace *p)
{
	if (!p->is_member)
		return json_null();
	return json_pack("{s:b, s:f, s:f, s:o, s:f, s:f}", "known", p->is_known, "speed",
			 round(1e4 * p->speed) / 1e4, "share_pct", rounded(100 * p->share),
			 "pace_pct", p->is_held ? json_real(rounded(100 * p->pace)) : json_null(),
			 "told_s", seconds(p->reported_work_ns), "held_s", seconds(p->held_ns));
}

static json_t *tenant_device_to_json(struct tenant *t, unsigned i, const struct lessee_figures *f)
{
	const struct tenant_device_terms *d = &t->terms.device[i];
	struct tenant_usage usage = tenant_usage(t, i);
	json_t *json = json_pack(
		"{s:i, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:s, s:f, s:f, s:f, s:I}", "index",
		d->card->index, "memory_quota_bytes", (json_int_t)d->promise.quota_bytes,
		"memory_used_bytes", (json_int_t)usage.used_bytes, "cores_pct",
		rounded(d->promise.cores_pct), "cores_limit_pct", rounded(d->promise.limit_pct),
		"cores_limit_now_pct", rounded(f->limit_now_pct), "lent_pct",
		rounded(f->limit_now_pct - tenant_limit_pct(t, i)), "spare_pct",
		rounded(f->spare_pct), "elastic_reason", lend_reason_name(f->lend_reason),
		"got_1s_pct", rounded(f->got_1s_pct), "got_60s_pct", rounded(f->got_60s_pct),
		"waited_s", seconds(usage.waited_ns), "denied", (json_int_t)usage.denied);
	/* The protocol does not promise the following members, so they may change. */
	json_t *more = json_pack(
		"{s:s, s:f, s:I, s:b, s:s, s:s, s:b, s:f, s:f, s:I, s:I, s:b, s:I, s:I, s:I}",
		"uuid", d->card->info.uuid_text, "cores_effective_pct",
		rounded(t->device[i].guaranteed_pct), "memory_unnamed_bytes",
		(json_int_t)usage.unnamed_bytes, "memory_given", d->promise.memory_given, "lease",
		lease_state_name(f->account.state), "mode", mode_names[f->mode], "stopped",
		f->stopped, "used_s", seconds(f->account.charged_ns), "overrun_s",
		seconds(f->account.overrun_ns), "leases", (json_int_t)f->account.leases, "expired",
		(json_int_t)f->account.expired, "gang", f->in_gang, "gang_turns",
		(json_int_t)f->gang_turns, "turns", (json_int_t)f->turns, "turns_given_up",
		(json_int_t)f->turns_given_up);
	json_object_set_new(more, "delta_60s_pct", json_real(rounded(tenant_delta_pct(t, i, f))));
	json_object_set_new(more, "step_turns", json_integer((json_int_t)f->account.step_turns));
	json_object_set_new(more, "step_ms", ms_or_null(f->step_ns));
	json_object_set_new(more, "steps", steps_to_json(&f->steps));
	json_object_set_new(more, "pace", pace_to_json(&f->pace));
	json_object_update(json, more);
	json_decref(more);
	if (t->terms.on_full == ON_FULL_WAIT)
		json_object_update_new(json,
				       json_pack("{s:I, s:I}", "memory_granted_bytes",
						 (json_int_t)t->memory_wait.granted_bytes[i],
						 "memory_reserve_bytes",
						 (json_int_t)(d->promise.reserve_bytes
								      ? d->promise.reserve_bytes
								      : d->promise.quota_bytes)));
	return json;
}

static json_t *wait_to_json(const struct tenant *t, uint64_t now_ns)
{
	const struct memory_wait *a = &t->memory_wait;
	if (a->state != MEMORY_WAIT_QUEUED)
		return json_null();
	return json_pack("{s:f, s:i, s:i}", "waited_s", seconds(now_ns - a->since_ns), "place",
			 (int)a->place, "passed", (int)a->passes);
}

static json_t *processes_to_json(struct tenant *t)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < t->slot_limit; i++) {
		struct process *p = t->process[i];
		if (!p)
			continue;
		json_t *devices = json_array();
		for (unsigned d = 0; d < t->terms.device_count; d++)
			json_array_append_new(devices,
					      json_pack("{s:i, s:I}", "index",
							t->terms.device[d].card->index,
							"memory_used_bytes",
							(json_int_t)process_held_bytes(p, d)));
		json_array_append_new(list,
				      json_pack("{s:i, s:o}", "pid", p->pid, "devices", devices));
	}
	return list;
}

static json_t *swap_device_to_json(struct tenant *t, unsigned i, const struct swap_device_figures *f)
{
	uint64_t used = tenant_usage(t, i).used_bytes;
	uint64_t known = f->movable_bytes + f->kept_bytes + f->context_bytes;
	return json_pack("{s:i, s:I, s:I, s:{s:I, s:I, s:I}}", "index",
			 (int)t->terms.device[i].card->index, "swappable_bytes",
			 (json_int_t)f->movable_bytes, "swapped_bytes", (json_int_t)f->out_bytes,
			 "stays", "contexts_bytes", (json_int_t)f->context_bytes,
			 "known_to_others_bytes", (json_int_t)f->kept_bytes, "not_movable_bytes",
			 (json_int_t)(used > known ? used - known : 0));
}

/*
 * Returns JSON null for a tenant that is on its GPUs and had no failed checkpoint. With on_full "swap", returns null if no
 * process has memory that the library can move.
 */
static json_t *swap_to_json(struct tenant *t)
{
	if (swap_way_of(&t->terms) == SWAP_BY_CHECKPOINT)
		return tenant_checkpoint_to_json(t);
	const char *state = swap_state_text(t);
	struct swap_figures f = swap_figures(t);
	if (!state)
		return json_null();
	json_t *devices = json_array();
	for (unsigned i = 0; i < t->terms.device_count; i++)
		json_array_append_new(devices, swap_device_to_json(t, i, &f.device[i]));
	return json_pack("{s:s, s:s, s:f, s:o, s:I, s:I, s:I, s:I, s:I, s:f}", "kind", "library",
			 "state", state, "share_scale", rounded(t->share_scale), "devices", devices,
			 "swappable_bytes", (json_int_t)f.movable_bytes, "swapped_bytes",
			 (json_int_t)f.out_bytes, "arena_bytes",
			 (json_int_t)t->terms.swap_arena_bytes, "arena_ready_bytes",
			 (json_int_t)atomic_load(&t->region.control->arena_ready_bytes), "failed",
			 (json_int_t)f.failed, "moved_s", seconds(f.moved_ns));
}

static json_t *host_quota_to_json(const struct tenant_terms *t)
{
	return t->has_host_quota ? json_integer((json_int_t)t->host_quota_bytes) : json_null();
}

static unsigned sum_violations(const struct tenant *t)
{
	unsigned sum = 0;
	for (unsigned i = 0; i < VIOLATION_REASONS; i++)
		sum += t->violations[i];
	return sum;
}

static json_t *tenant_to_json(struct tenant *t)
{
	struct lessee_figures figures[REGION_MAX_DEVICES];
	uint64_t now_ns = clock_now_ns();
	json_t *devices = json_array();
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		figures[i] = lessee_figures(t->device[i].lessee);
		json_array_append_new(devices, tenant_device_to_json(t, i, &figures[i]));
	}
	json_t *json = json_pack(
		"{s:s, s:s, s:s, s:o, s:b, s:I, s:i, s:s, s:b, s:b, s:i, s:o, s:o, s:I, s:f, s:o, "
		"s:o, s:o, s:s, s:o, s:s, s:o}",
		"name", t->terms.name, "id", t->terms.id, "state",
		tenant_condition_name(tenant_condition(t, figures)), "devices", devices, "elastic",
		elastic_is_on(t), "uid", (json_int_t)t->terms.uid, "priority", t->terms.priority,
		"on_full", on_full_name(t->terms.on_full), "adopting", t->adopting, "corrupt",
		t->corrupt, "violations", (int)sum_violations(t), "processes", processes_to_json(t),
		"host_memory_quota_bytes", host_quota_to_json(&t->terms), "host_memory_used_bytes",
		(json_int_t)tenant_host_bytes(t), "use_s",
		(double)(int64_t)(use_ns(t, now_ns) / 1e6 + 0.5) / 1e3, "memory_wait",
		wait_to_json(t, now_ns), "swap", swap_to_json(t), "containers",
		gpu_watch_tenant_containers(t->node->watch, t->terms.name), "on_violation",
		on_violation_name(violations_action(t)), "offenders",
		violations_of_tenant(t->node->violations, t->terms.name), "sharing",
		sharing_way_name(t->terms.sharing.way), "space", space_to_json(t));
	return json;
}

int request_list(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	json_t *tenants = json_array();
	struct tenant *t;
	TAILQ_FOREACH(t, &session->node->tenants, link)
		json_array_append_new(tenants, tenant_to_json(t));
	json_object_set_new(reply, "version", json_integer(1));
	json_object_set_new(reply, "devices", cards_to_json(session->node));
	json_object_set_new(reply, "tenants", tenants);
	return 0;
}

int request_tasks(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	gpu_watch_to_json(session->node->watch, reply);
	json_object_set_new(reply, "private", json_boolean(session->node->is_private));
	return 0;
}

int request_hello(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct node *node = session->node;
	json_object_set_new(reply, "pid", json_integer(getpid()));
	json_object_set_new(reply, "daemon", json_string("allotd " ALLOT_VERSION));
	json_object_set_new(reply, "epoch", json_integer((json_int_t)node->epoch));
	json_object_set_new(reply, "simulated", json_boolean(node->simulated));
	if (node->config_file)
		json_object_set_new(reply, "config_file", json_string(node->config_file));
	json_object_set_new(reply, "driver", json_string(node->backend->driver_version(node->gpu)));
	json_object_set_new(reply, "devices", cards_to_json(node));
	if (node->dra_json)
		json_object_set_new(reply, "dra", node->dra_json(node->dra));
	return 0;
}
