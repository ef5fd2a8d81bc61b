#include "daemon/subsystems.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/api/audit/audit.h"
#include "daemon/api/control.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/export/metrics/metrics.h"
#include "daemon/export/page/page.h"
#include "daemon/export/trace/tenant_trace.h"
#include "daemon/gpu/census.h"
#include "daemon/gpu/health/health.h"
#include "daemon/gpu/watch/open_cards.h"
#include "daemon/gpu/watch/census_compare.h"
#include "daemon/kubelet/dra/dra.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/plugin/plugin.h"
#include "daemon/memory/memory_waiters.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/memory/swap/swap_turns.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/elastic_terms.h"
#include "daemon/state/join/adopt.h"
#include "daemon/state/join/registration_socket.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/node/subsystem.h"
#include "daemon/state/tenant.h"
#include "daemon/state/tenant_state.h"
#include "daemon/state/use.h"
#include "daemon/tasks/commands/command_cgroups.h"
#include "daemon/tasks/freezer/gpu_records.h"
#include "daemon/tasks/namespace_use.h"
#include "daemon/tasks/violation/time_readings.h"
#include "daemon/tasks/violation/violations.h"
#include "daemon/tasks/watch/gpu_watch.h"
#include "daemon/tasks/watch/use_state.h"

#define TICK_NS NSEC_PER_SEC
/* A starting daemon lingers this much longer for its first tenant: the program that started it is about to connect. */
#define FIRST_LINGER_NS (1 * NSEC_PER_SEC)

/*
 * Returns true if no GPU time was charged or lent since the last tick, so tenants' use need not be read. An arbitration sleeps
 * no earlier than a second after its last charge, and ticks are a second apart. So if it slept at both ticks, it charged
 * nothing between them.
 */
static bool is_at_rest(struct node *node)
{
	bool was_asleep = node->slept_at_tick;
	node->slept_at_tick = true;
	for (unsigned i = 0; i < node->card_count; i++)
		node->slept_at_tick &= arbitration_is_sleeping(node->card[i].arbitration);
	return was_asleep && node->slept_at_tick;
}

/* Runs once a second while there are tenants. */
static void tick_due(void *data, uint32_t events)
{
	struct node *node = data;
	struct tenant *next;
	uint64_t now_ns = clock_now_ns();
	bool has_rested = is_at_rest(node);
	for (struct tenant *t = TAILQ_FIRST(&node->tenants); t; t = next) {
		next = TAILQ_NEXT(t, link);
		if (!has_rested) {
			use_update(t, now_ns);
			elastic_log(t);
		}
		tenant_state_check_usage(t);
		tenant_end_if_unused(t);
	}
	namespace_use_count(node, !has_rested, now_ns);
	census_resume_if_changed(node);
	time_readings_tick(node);
	node_grant_soon(node);
}

static void census_due(void *data, uint32_t events)
{
	struct node *node = data;
	census_request(node->census);
}

static void drain_due(void *data, uint32_t events)
{
	struct node *node = data;
	for (unsigned i = 0; i < node->card_count; i++)
		drain_update(node, &node->card[i], NULL);
	census_request(node->census);
}

static void linger_due(void *data, uint32_t events)
{
	struct node *node = data;
	if (node->tenant_count)
		return;
	/* A connected client may be about to make a tenant. */
	if (control_connections(node->control)) {
		loop_arm(node->linger_timer, node->config.linger_ns, 0);
		return;
	}
	log_info("no tenants: ending");
	loop_quit(node->loop);
}

static const struct {
	loop_handler handler;
	size_t timer; /* offset in struct node */
} timers[] = {
	{ tick_due, offsetof(struct node, tick) },
	{ census_due, offsetof(struct node, census_timer) },
	{ tenant_state_save_due, offsetof(struct node, save_timer) },
	{ use_state_save_due, offsetof(struct node, use_timer) },
	{ adopt_timer_due, offsetof(struct node, adopt_timer) },
	{ linger_due, offsetof(struct node, linger_timer) },
	{ drain_due, offsetof(struct node, drain_timer) },
	{ memory_wait_due, offsetof(struct node, memory_wait_timer) },
	{ swap_turns_due, offsetof(struct node, swap_timer) },
};
#define TIMERS (sizeof(timers) / sizeof(timers[0]))

static struct loop_source **timer_of(struct node *node, size_t i)
{
	return (struct loop_source **)(void *)((char *)node + timers[i].timer);
}

static int start_timers(struct node *node, struct error *err)
{
	for (size_t i = 0; i < TIMERS; i++) {
		int r = loop_add_timer(node->loop, timers[i].handler, node, timer_of(node, i));
		if (r < 0)
			return error_set_errno(err, -r, "can't make a timer");
	}
	return 0;
}

static void stop_timers(struct node *node)
{
	for (size_t i = 0; i < TIMERS; i++)
		*timer_of(node, i) = loop_remove(*timer_of(node, i));
}

static void populate_timers(struct node *node)
{
	if (node->populated) {
		loop_arm(node->tick, TICK_NS, TICK_NS);
		loop_disarm(node->linger_timer);
		return;
	}
	loop_disarm(node->tick);
	if (node->lingers)
		loop_arm(node->linger_timer, node->config.linger_ns, 0);
}

static int make_tenants_dirs(struct node *node, struct error *err)
{
	const mode_t modes[] = {
		[TENANT_PLACE_OWN] = node->is_private ? 0700 : 0711, [TENANT_PLACE_CLAIM] = 0700
	};
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		char path[NODE_PATH_MAX];
		tenant_dir_path(node, (enum tenant_place)i, NULL, NULL, path);
		if (mkdir(path, modes[i]) < 0 && errno != EEXIST)
			return error_set_errno(err, errno, "can't make %s", path);
		if (chmod(path, modes[i]) < 0)
			return error_set_errno(err, errno, "can't set the mode of %s", path);
	}
	return 0;
}

/* Returns true if a request swapped the tenant out, and some of its processes may still live: the tenant must stay out. */
static bool is_to_stay_out(struct node *node, const char *key)
{
	const struct tenant *t = node_find_tenant(node, key);
	return t && t->terms.swapped_out && (t->old || t->process_count);
}

static int start_tenants(struct node *node, struct error *err)
{
	unsigned adopted = adopt_all(node);
	if (adopted)
		log_info("%u tenants of the previous daemon are adopted", adopted);
	return 0;
}

static void stop_tenants(struct node *node)
{
	struct tenant *t;
	space_keep_groups_running(node);
	while ((t = TAILQ_FIRST(&node->tenants)))
		tenant_free(t);
}

/*
 * Ends groups without tenants (space_groups.h). Restores processes that an earlier daemon's checkpoint helper left suspended,
 * except those of which is_to_stay_out() is true.
 */
static int clean_up_after_adoption(struct node *node, struct error *err)
{
	adopt_end_unused(node);
	space_sweep(node);
	checkpoint_recover(node, is_to_stay_out);
	return 0;
}

/* Defines start_FIELD() and stop_FIELD() of a part that node->FIELD points to. */
#define PART(field, start, stop) \
	static int start_##field(struct node *node, struct error *err) \
	{ \
		return start(node, &node->field, err); \
	} \
	static void stop_##field(struct node *node) \
	{ \
		node->field = stop(node->field); \
	}
PART(audit, audit_start, audit_stop)
PART(census, census_start, census_stop)
PART(health, health_start, health_stop)
PART(claims, claims_open, claims_close)
PART(watch, gpu_watch_start, gpu_watch_stop)
PART(commands, command_cgroups_start, command_cgroups_stop)
PART(violations, violations_start, violations_stop)
PART(time_readings, time_readings_start, time_readings_stop)
PART(metrics, metrics_start, metrics_stop)
PART(page, page_start, page_stop)
PART(kube, node_kube_start, node_kube_stop)
PART(control, control_open, control_close)
PART(plugin, plugin_start, plugin_stop)
PART(dra, dra_start, dra_stop)

static void notify_dra(struct node *node)
{
	dra_promises_changed(node->dra);
}

static int load_use(struct node *node, struct error *err)
{
	use_state_load(node);
	return 0;
}

static void free_records(struct node *node)
{
	node->records = gpu_records_free(node->records);
}

static int begin_registration(struct tenant *tenant, bool is_new, struct error *err)
{
	return registration_open(tenant, &tenant->registration, err);
}

static void end_swap(struct tenant *tenant)
{
	swap_turns_remove(tenant);
	swap_close(tenant);
}

static void end_registration(struct tenant *tenant)
{
	tenant->registration = registration_close(tenant->registration);
}

/* Foreign memory is counted last: it is in no tenant's ledger, and no dead process's memory that the driver still holds. */
static void compare_cards(struct node *node, const struct census_card *seen)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		census_compare(node, i, &seen[i]);
		drain_update(node, &node->card[i], &seen[i]);
		census_count_foreign(node, &node->card[i], &seen[i]);
	}
}

static void watch_census(struct node *node, const struct census_card *seen)
{
	gpu_watch_census(node->watch, seen);
}

static void check_violations(struct node *node, const struct census_card *seen)
{
	violations_census(node->violations, seen);
}

/* Started in this order and stopped in reverse, so a part must come after the parts that it uses. */
static const struct subsystem subsystems[] = {
	{ .name = "audit log", start_audit, stop_audit, .tenant_ended = audit_tenant_ended },
	{ .name = "timers", start_timers, stop_timers, .populated_changed = populate_timers },
	{ .name = "cards", cards_start, cards_stop },
	{ .name = "cordons", cordon_load },
	{ .name = "census",
	  start_census,
	  stop_census,
	  .tenants_changed = census_tenants_changed,
	  .populated_changed = census_populated_changed,
	  .cards_polled = census_resume_if_changed,
	  .census_read = compare_cards },
	{ .name = "health", start_health, stop_health },
	{ .name = "directories", make_tenants_dirs },
	{ .name = "guarantees", .tenants_changed = node_update_guarantees },
	{ .name = "unpromised memory", .tenants_changed = node_update_all_unpromised_quotas },
	{ .name = "space",
	  space_open,
	  space_close,
	  .tenant_added = space_tenant_added,
	  .tenant_removed = space_leave,
	  .process_gone = space_note_exited },
	{ .name = "use", load_use, free_records, .tenant_begins = use_begin, .tenant_removed = use_end },
	{ .name = "use by namespace",
	  namespace_use_start,
	  namespace_use_stop,
	  .tenant_removed = namespace_use_end },
	{ .name = "admission",
	  .tenant_begins = memory_wait_begin,
	  .tenant_removed = memory_wait_end,
	  .tenant_retired = memory_wait_give_up,
	  .tenants_changed = node_grant_soon },
	{ .name = "lending", .tenant_begins = elastic_apply, .share_changed = elastic_apply },
	{ .name = "depth of free run", .processes_changed = tenant_publish_free_depth },
	{ .name = "swap",
	  .stop = swap_turns_free,
	  .tenant_added = swap_tenant_added,
	  .tenant_removed = end_swap,
	  .tenants_changed = swap_turns_update },
	{ .name = "checkpoint", .tenant_removed = tenant_checkpoint_forget },
	{ .name = "trace", .tenant_removed = tenant_trace_forget },
	{ .name = "registration",
	  .tenant_added = begin_registration,
	  .tenant_removed = end_registration },
	{ .name = "tenants",
	  start_tenants,
	  stop_tenants,
	  .tenant_removed = adopt_forget_all,
	  .process_gone = adopt_slot_gone,
	  .needs_census = tenant_is_any_adopting },
	{ .name = "cgroups of commands",
	  start_commands,
	  stop_commands,
	  .tenant_ended = command_cgroups_end },
	{ .name = "claims", start_claims, stop_claims },
	{ .name = "leftovers", clean_up_after_adoption },
	{ .name = "GPU watch", start_watch, stop_watch, .census_read = watch_census },
	{ .name = "violations",
	  start_violations,
	  stop_violations,
	  .census_read = check_violations,
	  .needs_census = violations_has_open },
	{ .name = "measured time",
	  start_time_readings,
	  stop_time_readings,
	  .tenant_added = time_readings_tenant_added,
	  .populated_changed = time_readings_populated_changed },
	/* After tenants and GPU watch in this table, so .stop saves their use before they are stopped. */
	{ .name = "file of use", .stop = use_state_save },
	{ .name = "metrics", start_metrics, stop_metrics },
	{ .name = "page", start_page, stop_page },
	{ .name = "Kubernetes", start_kube, stop_kube },
	{ .name = "control socket", start_control, stop_control },
	{ .name = "device plugin", start_plugin, stop_plugin },
	{ .name = "DRA driver", start_dra, stop_dra, .tenants_changed = notify_dra },
	{ 0 },
};

static int make_epoch(uint64_t *ret, struct error *err)
{
	uint64_t epoch;
	do {
		if (getrandom(&epoch, sizeof(epoch), 0) != sizeof(epoch))
			return error_set_errno(err, errno, "can't get random numbers (getrandom)");
		/* 53 bits: exact in JSON readers that store numbers as doubles. */
		epoch &= (UINT64_C(1) << 53) - 1;
	} while (!epoch);
	*ret = epoch;
	return 0;
}

int node_open(struct node *node, const struct gpu_backend *backend, const char *source,
	      struct error *err)
{
	TAILQ_INIT(&node->tenants);
	node->memory_event_fd = -1;
	node->backend = backend;
	node->gpu_source = source;
	int r = make_epoch(&node->epoch, err);
	if (r >= 0)
		r = loop_new(&node->loop, err);
	if (r < 0)
		return r;
	node->subsystems = subsystems;
	for (const struct subsystem *s = subsystems; r >= 0 && s->name; s++)
		r = s->start ? s->start(node, err) : 0;
	if (r >= 0 && node->lingers && !node->tenant_count)
		loop_arm(node->linger_timer, FIRST_LINGER_NS + node->config.linger_ns, 0);
	return r;
}

void node_close(struct node *node)
{
	struct tenant *t;
	if (!node->loop)
		return;
	TAILQ_FOREACH(t, &node->tenants, link) {
		struct error err = { 0 };
		if (tenant_state_save(t, false, &err) < 0)
			log_warning("allotd ends and can't save the state of a tenant: %s; when "
				    "allotd starts again, it restores the tenant from the last saved "
				    "state",
				    err.text);
	}
	for (size_t i = sizeof(subsystems) / sizeof(subsystems[0]); i-- > 0;)
		if (subsystems[i].stop)
			subsystems[i].stop(node);
	node->loop = loop_free(node->loop);
}
