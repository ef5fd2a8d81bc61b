#include "daemon/export/page/state.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/api/condition.h"
#include "daemon/memory/memory_waiters.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/elastic_terms.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/tenant.h"
#include "daemon/state/use.h"
#include "daemon/tasks/freezer/freezer.h"
#include "daemon/tasks/watch/container_swap.h"
#include "daemon/tasks/watch/gpu_watch.h"

#define HOST_MAX 65
#define MIB 1048576.0
#define CONTAINERS_MAX 256

static void write_bytes(struct json_text *t, const char *key, uint64_t bytes)
{
	json_text_whole(t, key, (int64_t)bytes);
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

static void write_health(const struct card *card, struct json_text *t)
{
	char reason[HEALTH_REASON_MAX];
	health_reason(&card->health, reason);
	json_text_string(t, "health", card->health.is_bad ? "unhealthy" : "healthy");
	json_text_string(t, "health_reason", card->health.is_bad ? reason : NULL);
	json_text_bool(t, "cordoned", card->is_cordoned || card->is_cordoned_by_settings);
}

static void write_card(struct node *node, struct card *card, struct json_text *t)
{
	struct promise_card p = node_promised(node, card, NULL);
	struct grant_card room = memory_wait_card(node, card);
	json_text_open(t, NULL, '{');
	json_text_whole(t, "index", card->index);
	json_text_string(t, "uuid", card->info.uuid_text);
	json_text_string(t, "name", card->info.name);
	write_bytes(t, "memory_bytes", card->info.memory_bytes);
	if (card->memory_known)
		write_bytes(t, "memory_used_bytes", card->memory_used_bytes);
	else
		json_text_null(t, "memory_used_bytes");
	json_text_real(t, "busy_pct", arbitration_figures(card->arbitration).busy_pct);
	write_bytes(t, "promised_bytes", p.promised_bytes);
	json_text_real(t, "promised_cores_pct", p.promised_cores_pct);
	write_bytes(t, "granted_bytes", p.granted_bytes);
	write_bytes(t, "draining_bytes", drain_bytes(card));
	write_bytes(t, "foreign_bytes", card->foreign_bytes);
	write_bytes(t, "grantable_bytes", grant_free_bytes(&room));
	json_text_string(t, "policy", config_policy_name(node->config.arbiter.policy));
	write_health(card, t);
	json_text_close(t, '}');
}

static void write_steps(const struct step_figures *s, struct json_text *out)
{
	if (!s->is_known) {
		json_text_null(out, "steps");
		return;
	}
	json_text_open(out, "steps", '{');
	json_text_real(out, "per_second", s->per_second);
	json_text_real(out, "p50_ms", (double)s->p50_ns / NSEC_PER_MSEC);
	json_text_real(out, "p99_ms", (double)s->p99_ns / NSEC_PER_MSEC);
	json_text_close(out, '}');
}

static void write_device(struct tenant *t, unsigned i, const struct lessee_figures *f,
			 struct json_text *out)
{
	const struct tenant_device_terms *d = &t->terms.device[i];
	struct tenant_usage usage = tenant_usage(t, i);
	json_text_open(out, NULL, '{');
	json_text_whole(out, "index", d->card->index);
	write_bytes(out, "memory_quota_bytes", d->promise.quota_bytes);
	json_text_bool(out, "memory_given", d->promise.memory_given);
	write_bytes(out, "memory_used_bytes", usage.used_bytes);
	json_text_real(out, "cores_pct", d->promise.cores_pct);
	json_text_real(out, "cores_limit_pct", d->promise.limit_pct);
	json_text_real(out, "cores_limit_now_pct", f->limit_now_pct);
	json_text_real(out, "lent_pct", f->limit_now_pct - tenant_limit_pct(t, i));
	json_text_real(out, "got_1s_pct", f->got_1s_pct);
	json_text_real(out, "got_60s_pct", f->got_60s_pct);
	json_text_real(out, "waited_s", seconds(usage.waited_ns));
	json_text_whole(out, "denied", (int64_t)usage.denied);
	json_text_string(out, "lease", lease_state_name(f->account.state));
	json_text_bool(out, "stopped", f->stopped);
	write_steps(&f->steps, out);
	json_text_whole(out, "leases", (int64_t)f->account.leases);
	if (t->terms.on_full == ON_FULL_WAIT) {
		write_bytes(out, "memory_granted_bytes", t->memory_wait.granted_bytes[i]);
		write_bytes(out, "memory_reserve_bytes",
			    d->promise.reserve_bytes ? d->promise.reserve_bytes
						     : d->promise.quota_bytes);
	}
	json_text_close(out, '}');
}

static void write_wait(const struct tenant *t, uint64_t now_ns, struct json_text *out)
{
	const struct memory_wait *a = &t->memory_wait;
	if (a->state != MEMORY_WAIT_QUEUED) {
		json_text_null(out, "memory_wait");
		return;
	}
	json_text_open(out, "memory_wait", '{');
	json_text_real(out, "waited_s", seconds(now_ns - a->since_ns));
	json_text_whole(out, "place", a->place);
	json_text_whole(out, "passed", a->passes);
	json_text_close(out, '}');
}

/* Takes ownership of `value`. */
static void write_json(struct json_text *t, const char *key, json_t *value)
{
	char *text = json_is_null(value) ? NULL : json_dumps(value, JSON_COMPACT);
	json_decref(value);
	if (text)
		json_text_raw(t, key, text);
	else
		json_text_null(t, key);
	free(text);
}

static void write_swap(struct tenant *t, struct json_text *out)
{
	if (swap_way_of(&t->terms) == SWAP_BY_CHECKPOINT) {
		write_json(out, "swap", tenant_checkpoint_to_json(t));
		return;
	}
	const char *state = swap_state_text(t);
	if (!state) {
		json_text_null(out, "swap");
		return;
	}
	const struct swap_figures f = swap_figures(t);
	json_text_open(out, "swap", '{');
	json_text_string(out, "kind", "library");
	json_text_string(out, "state", state);
	write_bytes(out, "swappable_bytes", f.movable_bytes);
	write_bytes(out, "swapped_bytes", f.out_bytes);
	json_text_whole(out, "failed", (int64_t)f.failed);
	json_text_real(out, "moved_s", seconds(f.moved_ns));
	json_text_real(out, "share_scale", t->share_scale);
	json_text_close(out, '}');
}

static void write_tenant(struct tenant *t, uint64_t now_ns, struct json_text *out)
{
	struct lessee_figures figures[REGION_MAX_DEVICES];
	unsigned violations = 0;
	for (unsigned i = 0; i < VIOLATION_REASONS; i++)
		violations += t->violations[i];
	for (unsigned i = 0; i < t->terms.device_count; i++)
		figures[i] = lessee_figures(t->device[i].lessee);
	json_text_open(out, NULL, '{');
	json_text_string(out, "name", t->terms.name);
	json_text_string(out, "id", t->terms.id);
	json_text_string(out, "state", tenant_condition_name(tenant_condition(t, figures)));
	json_text_whole(out, "uid", (int64_t)t->terms.uid);
	json_text_whole(out, "priority", t->terms.priority);
	json_text_string(out, "on_full", on_full_name(t->terms.on_full));
	json_text_bool(out, "elastic", elastic_is_on(t));
	json_text_whole(out, "violations", violations);
	json_text_real(out, "use_s", use_ns(t, now_ns) / (double)NSEC_PER_SEC);
	write_wait(t, now_ns, out);
	write_swap(t, out);
	json_text_open(out, "devices", '[');
	for (unsigned i = 0; i < t->terms.device_count; i++)
		write_device(t, i, &figures[i], out);
	json_text_close(out, ']');
	json_text_close(out, '}');
}

static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

static void write_held(const struct gpu_container *c, unsigned cards, struct json_text *t)
{
	json_text_open(t, "devices", '[');
	for (unsigned i = 0; i < cards; i++) {
		if (!c->card[i].is_present && !c->card[i].held_bytes)
			continue;
		json_text_open(t, NULL, '{');
		json_text_whole(t, "index", i);
		write_bytes(t, "memory_used_bytes", c->card[i].held_bytes);
		json_text_close(t, '}');
	}
	json_text_close(t, ']');
}

static void write_container(struct node *node, const struct gpu_container *c, unsigned cards,
			    uint64_t now_ns, struct json_text *t)
{
	uint64_t frozen_ns = c->frozen_since_ns ? now_ns - c->frozen_since_ns : 0;
	json_text_open(t, NULL, '{');
	json_text_string(t, "id", c->what.id);
	json_text_string(t, "engine", c->what.engine);
	json_text_string(t, "name", text_or_null(c->name.name));
	json_text_string(t, "pod", text_or_null(c->name.pod));
	json_text_string(t, "namespace", text_or_null(c->name.namespace));
	const char *moved = container_swap_state(c);
	json_text_string(t, "state", moved ? moved : freezer_state_name(c));
	json_text_bool(t, "library", c->has_library);
	json_text_whole(t, "tasks", c->live);
	json_text_real(t, "frozen_now_s", seconds(frozen_ns));
	json_text_real(t, "frozen_s", seconds(freezer_frozen_ns(c, now_ns)));
	json_text_real(t, "faded_use_s",
		       fade_use_ns(&c->fade, now_ns, node->config.use_half_life_ns) / 1e9);
	write_held(c, cards, t);
	write_json(t, "swap", container_swap_to_json(c));
	json_text_close(t, '}');
}

/* Frozen containers, and containers moved off their cards, come first; then others with live GPU processes. */
static void write_containers(struct node *node, uint64_t now_ns, struct json_text *t)
{
	const struct gpu_tasks *tasks = node->watch ? gpu_watch_tasks(node->watch) : NULL;
	const struct gpu_container *c;
	unsigned left = CONTAINERS_MAX;
	json_text_open(t, "containers", '[');
	for (int pass = 0; tasks && pass < 2; pass++)
		TAILQ_FOREACH(c, &tasks->containers, link) {
			bool is_still = c->frozen_since_ns || container_swap_is_away(c);
			if (is_still != !pass || (!is_still && !c->live) || !left)
				continue;
			write_container(node, c, tasks->card_count, now_ns, t);
			left--;
		}
	json_text_close(t, ']');
}

static void write_spans(struct card *card, uint64_t now_ns, uint64_t *sent, struct json_text *t)
{
	struct lease_span spans[LEASE_SPANS_MAX];
	size_t count = arbitration_spans(card->arbitration, *sent, now_ns, spans, sent);
	json_text_open(t, NULL, '{');
	json_text_whole(t, "index", card->index);
	json_text_open(t, "spans", '[');
	for (size_t i = 0; i < count; i++) {
		const struct lease_span *s = &spans[i];
		bool is_over = s->end_ns;
		uint64_t end_ns = is_over ? s->end_ns : now_ns;
		json_text_open(t, NULL, '[');
		json_text_whole(t, NULL, (int64_t)s->number);
		json_text_string(t, NULL, s->tenant);
		json_text_real(t, NULL, (double)s->begin_ns / (double)NSEC_PER_MSEC);
		json_text_real(t, NULL, (double)(end_ns - s->begin_ns) / (double)NSEC_PER_MSEC);
		json_text_string(t, NULL, s->is_free ? "free" : "lease");
		json_text_bool(t, NULL, is_over);
		json_text_close(t, ']');
	}
	json_text_close(t, ']');
	json_text_close(t, '}');
}

void page_state_write(struct node *node, struct page_sent *sent, struct state_text *s)
{
	struct json_text *t = &s->json;
	char host[HOST_MAX] = "";
	uint64_t now_ns = clock_now_ns();
	struct tenant *tenant;
	if (gethostname(host, sizeof(host) - 1) < 0)
		*host = '\0';
	json_text_open(t, NULL, '{');
	json_text_whole(t, "version", 1);
	json_text_string(t, "daemon", "allotd " ALLOT_VERSION);
	json_text_whole(t, "epoch", (int64_t)node->epoch);
	json_text_string(t, "host", host);
	json_text_bool(t, "simulated", node->simulated);
	json_text_real(t, "time_s", (double)clock_read_ns(CLOCK_REALTIME) / 1e9);
	json_text_real(t, "clock_ms", (double)now_ns / (double)NSEC_PER_MSEC);
	json_text_open(t, "devices", '[');
	for (unsigned i = 0; i < node->card_count; i++)
		write_card(node, &node->card[i], t);
	json_text_close(t, ']');
	state_text_open_tenants(s);
	TAILQ_FOREACH(tenant, &node->tenants, link) {
		state_text_begin_tenant(s, tenant->terms.id);
		write_tenant(tenant, now_ns, t);
		state_text_end_tenant(s);
	}
	state_text_close_tenants(s);
	write_containers(node, now_ns, t);
	json_text_bool(t, "freezer", node->watch && node->config.is_freezing);
	json_text_open(t, "leases", '[');
	for (unsigned i = 0; i < node->card_count; i++)
		write_spans(&node->card[i], now_ns, &sent->spans[i], t);
	json_text_close(t, ']');
	json_text_close(t, '}');
}

void page_state_sample(struct node *node, struct history *history)
{
	struct tenant *t;
	history_step(history, clock_now_ns());
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->terms.device_count; i++) {
			const struct tenant_device_terms *d = &t->terms.device[i];
			struct lessee_figures f = lessee_figures(t->device[i].lessee);
			history_add(
				history, t->terms.id, d->card->index,
				(struct history_sample){
					.got_pct = (float)f.got_1s_pct,
					.limit_pct = (float)f.limit_now_pct,
					.used_mib = (float)((double)tenant_usage(t, i).used_bytes /
							    MIB),
					.quota_mib = (float)((double)d->promise.quota_bytes / MIB),
				});
		}
}
