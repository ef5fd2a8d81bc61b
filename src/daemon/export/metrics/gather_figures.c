#include "daemon/export/metrics/gather_figures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/api/control.h"
#include "daemon/export/metrics/exposition.h"
#include "daemon/export/metrics/metrics_names.h"
#include "daemon/gpu/census.h"
#include "daemon/gpu/sensor.h"
#include "daemon/kubelet/devices/dra_key.h"
#include "daemon/memory/memory_waiters.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/memory/swap/swap_turns.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/elastic_terms.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/use.h"
#include "daemon/tasks/namespace_use.h"
#include "daemon/tasks/watch/gpu_watch.h"

static void label(char *labels, const char *key, const char *value)
{
	exposition_label(labels, METRICS_LABELS_MAX, key, value);
}

void metrics_label_card(char *labels, const struct card *card)
{
	char index[16];
	snprintf(index, sizeof(index), "%u", card->index);
	label(labels, "device", index);
	label(labels, "uuid", card->info.uuid_text);
}

static void gather_card(struct node *node, struct card *card, struct metrics_card *m)
{
	const struct arbiter_config *policy = &node->config.arbiter;
	*m = (struct metrics_card){
		.name = card->info.name,
		.uuid = card->info.uuid_text,
		.promised = node_promised(node, card, NULL),
		.arbitration = arbitration_figures(card->arbitration),
		.policy = config_policy_name(policy->policy),
		.used_known = card->memory_known,
		.memory_bytes = card->info.memory_bytes,
		.used_bytes = card->memory_used_bytes,
		.kept_bytes = card->kept_bytes,
		.foreign_bytes = card->foreign_bytes,
		.draining_bytes = drain_bytes(card),
		.context_bytes = card->context_bytes,
		.has_sensor = card->sensor,
		.swapped_out_bytes = card->swapped_out_bytes,
		.is_healthy = !card->health.is_bad,
		.is_cordoned = card->is_cordoned || card->is_cordoned_by_settings,
	};
	m->sensor_fallbacks = m->arbitration.unlisted + sensor_failures(card->sensor);
	memcpy(m->faults, card->faults, sizeof(m->faults));
	snprintf(m->index, sizeof(m->index), "%u", card->index);
	metrics_label_card(m->labels, card);
}

static void note_library(struct metrics_tenant *m, uint32_t version)
{
	unsigned i = 0;
	while (i < m->library_count && i + 1 < METRICS_LIBRARIES && m->library[i].version != version)
		i++;
	if (i == m->library_count)
		m->library[m->library_count++].version = version;
	m->library[i].processes++;
}

/* Gathers the names of the tenant's container, and counts the tenant's processes by library version. */
static void gather_pod(const struct tenant *t, struct metrics_tenant *m)
{
	const struct engine_name *who = gpu_watch_tenant_name(t->node->watch, t);
	m->has_pod = who;
	m->namespace = who ? who->namespace : "";
	m->pod = who ? who->pod : "";
	m->container = who && who->name[0] ? who->name : t->terms.name;
	for (unsigned i = 0; i < t->slot_limit; i++)
		if (t->process[i])
			note_library(m, t->process[i]->library_version);
}

static void label_claim(const struct tenant *t, struct metrics_tenant *m)
{
	struct dra_key key;
	if (!dra_key_parse(t->terms.claim.key, &key))
		return;
	snprintf(m->claim_labels, sizeof(m->claim_labels), "%s", m->labels);
	exposition_label(m->claim_labels, sizeof(m->claim_labels), "namespace",
			 key.name.in_namespace);
	exposition_label(m->claim_labels, sizeof(m->claim_labels), "claim", key.name.name);
	exposition_label(m->claim_labels, sizeof(m->claim_labels), "uid", key.name.uid);
}

static void label_hami(const struct metrics_tenant *t, unsigned number,
		       struct metrics_tenant_device *d)
{
	char index[METRICS_INDEX_MAX];
	snprintf(index, sizeof(index), "%u", number);
	exposition_label(d->hami_labels, sizeof(d->hami_labels), "namespace", t->namespace);
	exposition_label(d->hami_labels, sizeof(d->hami_labels), "pod", t->pod);
	exposition_label(d->hami_labels, sizeof(d->hami_labels), "container", t->container);
	exposition_label(d->hami_labels, sizeof(d->hami_labels), "vdevice_index", index);
	exposition_label(d->hami_labels, sizeof(d->hami_labels), "device_uuid", d->uuid);
}

static uint64_t context_bytes(const struct tenant *t, unsigned device)
{
	uint64_t sum = 0, most = t->terms.device[device].card->info.memory_bytes;
	for (unsigned i = 0; i < t->slot_limit; i++)
		if (t->process[i]) {
			uint64_t bytes = atomic_load_explicit(
				&t->region.report->slot[i].device[device].context_used_bytes,
				memory_order_relaxed);
			sum += bytes < most ? bytes : most;
		}
	return sum < most ? sum : most;
}

/* `devices`: the figures of the tenant's devices, in order; their `usage` must be set. */
static void gather_swap(struct tenant *t, struct metrics_tenant *m,
			struct metrics_tenant_device *devices)
{
	struct swap_figures f = swap_figures(t);
	m->swap_state = swap_state_text(t);
	m->has_swap_figures = m->swap_state;
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		const struct swap_device_figures *d = &f.device[i];
		uint64_t known = d->movable_bytes + d->kept_bytes + d->context_bytes;
		uint64_t used = devices[i].usage.used_bytes;
		devices[i].has_swap_figures = m->has_swap_figures;
		devices[i].swappable_bytes = d->movable_bytes;
		devices[i].swapped_bytes = d->out_bytes;
		devices[i].stays_contexts_bytes = d->context_bytes;
		devices[i].stays_known_bytes = d->kept_bytes;
		devices[i].stays_other_bytes = used > known ? used - known : 0;
	}
	m->arena_bytes = t->terms.swap_arena_bytes;
	m->arena_ready_bytes = atomic_load(&t->region.control->arena_ready_bytes);
	m->move_failures = f.failed;
	m->move_ns = f.moved_ns;
	m->moves = t->moves;
}

static void gather_wait(const struct tenant *t, uint64_t now_ns, struct metrics_tenant *m)
{
	const struct memory_wait *a = &t->memory_wait;
	m->waited_ns = t->waits.waited_ns;
	m->is_queued = a->state == MEMORY_WAIT_QUEUED;
	if (!m->is_queued)
		return;
	m->wait_ns = now_ns - a->since_ns;
	m->waited_ns += m->wait_ns;
	m->wait_place = a->place;
	m->wait_passes = a->passes;
}

static void gather_tenant(struct tenant *t, const struct lessee_figures *figures, uint64_t now_ns,
			  struct metrics_tenant *m)
{
	*m = (struct metrics_tenant){
		.id = t->terms.id,
		.on_full = on_full_name(t->terms.on_full),
		.uid = t->terms.uid,
		.condition = tenant_condition(t, figures),
		.priority = t->terms.priority,
		.processes = t->process_count,
		.use_ns = (uint64_t)use_ns(t, now_ns),
		.gang_turns = figures[0].gang_turns,
		.is_corrupt = t->corrupt,
		.has_host_quota = t->terms.has_host_quota,
		.host_quota_bytes = t->terms.host_quota_bytes,
		.host_used_bytes = tenant_host_bytes(t),
		.waits = t->terms.on_full == ON_FULL_WAIT,
		.swaps = t->terms.on_full == ON_FULL_SWAP,
	};
	for (unsigned i = 0; i < VIOLATION_REASONS; i++)
		m->violations[i] = t->violations[i];
	label(m->labels, "tenant", t->terms.name);
	gather_wait(t, now_ns, m);
	gather_pod(t, m);
	label_claim(t, m);
}

static void gather_tenant_device(struct tenant *t, unsigned i, const struct lessee_figures *f,
				 const struct metrics_card *card, uint64_t now_ns,
				 struct metrics_tenant_device *m)
{
	const struct tenant_device_terms *d = &t->terms.device[i];
	*m = (struct metrics_tenant_device){
		.index = card->index,
		.uuid = d->card->info.uuid_text,
		.promise = d->promise,
		.usage = tenant_usage(t, i),
		.lessee = *f,
		.context_bytes = context_bytes(t, i),
		.has_worked = t->device[i].worked_ns,
		.waits = t->terms.on_full == ON_FULL_WAIT,
		.granted_bytes = t->memory_wait.granted_bytes[i],
		.reserve_bytes = d->promise.reserve_bytes ? d->promise.reserve_bytes
							  : d->promise.quota_bytes,
		.cores_guaranteed_pct = t->device[i].guaranteed_pct,
		.cores_lent_pct = f->limit_now_pct - tenant_limit_pct(t, i),
		.cores_delta_pct = tenant_delta_pct(t, i, f),
		.is_elastic = elastic_is_on(t),
	};
	uint64_t used = m->usage.used_bytes, known = m->usage.unnamed_bytes + m->context_bytes;
	m->buffer_bytes = used > known ? used - known : 0;
	m->rested_ns = now_ns > t->device[i].worked_ns ? now_ns - t->device[i].worked_ns : 0;
	if (m->waits)
		m->wanted_bytes = memory_wait_wanted_bytes(t, i);
	label(m->labels, "tenant", t->terms.name);
	metrics_label_card(m->labels, d->card);
}

static void gather_tenants(struct node *node, uint64_t now_ns, struct metrics_figures *f)
{
	struct lessee_figures figures[REGION_MAX_DEVICES];
	unsigned names = 0;
	struct tenant *t;
	metrics_names_parse(node->config.metrics_names, &names, NULL);
	bool has_hami = names & METRICS_NAMES_HAMI;
	TAILQ_FOREACH(t, &node->tenants, link) {
		struct metrics_tenant *m = &f->tenant[f->tenant_count++];
		struct metrics_tenant_device *devices = &f->tenant_device[f->tenant_device_count];
		for (unsigned i = 0; i < t->terms.device_count; i++) {
			const struct metrics_card *card = &f->card[t->terms.device[i].card->index];
			figures[i] = lessee_figures(t->device[i].lessee);
			gather_tenant_device(t, i, &figures[i], card, now_ns, &devices[i]);
		}
		size_t first = f->tenant_device_count;
		f->tenant_device_count += t->terms.device_count;
		gather_tenant(t, figures, now_ns, m);
		m->device_first = first;
		m->device_count = t->terms.device_count;
		for (unsigned i = 0; has_hami && i < m->device_count; i++)
			label_hami(m, i, &devices[i]);
		if (m->swaps)
			gather_swap(t, m, devices);
		f->daemon.tenants[m->condition]++;
	}
}

static bool read_resident(uint64_t *ret_bytes)
{
	cleanup_file FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size, pages;
	if (!file || fscanf(file, "%lu %lu", &size, &pages) != 2)
		return false;
	*ret_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

static void gather_claims(struct claims *claims, struct metrics_daemon *m)
{
	m->claims = claims_counts(claims);
	for (struct claim *c = claims_first(claims); c; c = claims_next(c))
		++*(c->tenant ? &m->claims_in_force : &m->claims_parked);
}

static void gather_daemon(struct node *node, uint64_t now_ns, struct metrics_daemon *m)
{
	m->version = ALLOT_VERSION;
	m->driver = node->backend->driver_version(node->gpu);
	m->is_simulated = node->simulated;
	m->cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	m->resident_known = read_resident(&m->resident_bytes);
	m->connections = control_connections(node->control);
	m->requests = node->requests;
	memcpy(m->allocation_failures, node->allocation_failures, sizeof(m->allocation_failures));
	m->namespaces = node->namespaces;
	if (gethostname(m->host, sizeof(m->host) - 1) < 0)
		m->host[0] = '\0';
	m->refused = node->refused;
	m->driver_wait_ns = census_wait_ns(node->census, now_ns);
	m->waits = node->waits;
	gather_claims(node->claims, m);
	m->audit = audit_figures(node->audit);
	m->live_changes = node->live_changes;
	m->live_changes_refused = node->live_changes_refused;
	m->violations = violations_figures(node->violations);
	m->space = space_figures(node);
	m->moves = swap_turns_moves(node);
	m->arena_budget_bytes = swap_budget_bytes(node);
	m->arena_reserved_bytes = swap_reserved_bytes(node);
	m->has_plugin = plugin_figures(node->plugin, &m->plugin);
	m->has_dra = dra_figures(node->dra, &m->dra);
}

/* The part of the unpromised memory and GPU time that is on cards with tenants. */
static void gather_fragments(const struct metrics_figures *f, struct metrics_daemon *m)
{
	double memory = 0, cores = 0, begun_memory = 0, begun_cores = 0;
	for (size_t i = 0; i < f->card_count; i++) {
		const struct metrics_card *c = &f->card[i];
		const struct promise_card *p = &c->promised;
		uint64_t taken = p->promised_bytes + p->granted_bytes;
		double bytes = taken < c->memory_bytes ? (double)(c->memory_bytes - taken) : 0;
		double pct = p->promised_cores_pct < 100 ? 100 - p->promised_cores_pct : 0;
		memory += bytes;
		cores += pct;
		begun_memory += p->tenant_count ? bytes : 0;
		begun_cores += p->tenant_count ? pct : 0;
	}
	m->has_free_memory = memory > 0;
	m->has_free_cores = cores > 0;
	m->fragmented_memory_pct = memory > 0 ? 100 * begun_memory / memory : 0;
	m->fragmented_cores_pct = cores > 0 ? 100 * begun_cores / cores : 0;
}

static int make_room(const struct node *node, struct metrics_figures *f)
{
	size_t parts = 0;
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		parts += t->terms.device_count;
	f->card = calloc(node->card_count + 1, sizeof(*f->card));
	f->tenant = calloc(node->tenant_count + 1, sizeof(*f->tenant));
	f->tenant_device = calloc(parts + 1, sizeof(*f->tenant_device));
	return f->card && f->tenant && f->tenant_device ? 0 : -ENOMEM;
}

int metrics_gather(struct node *node, struct metrics_figures *ret)
{
	struct metrics_figures f = { 0 };
	uint64_t now_ns = clock_now_ns();
	int r = make_room(node, &f);
	if (r >= 0) {
		for (unsigned i = 0; i < node->card_count; i++)
			gather_card(node, &node->card[i], &f.card[i]);
		f.card_count = node->card_count;
		gather_tenants(node, now_ns, &f);
		gather_daemon(node, now_ns, &f.daemon);
		gather_fragments(&f, &f.daemon);
		r = metrics_gather_containers(node, now_ns, &f);
	}
	if (r < 0) {
		metrics_figures_free(&f);
		return r;
	}
	*ret = f;
	return 0;
}

void metrics_figures_free(struct metrics_figures *f)
{
	free(f->card);
	free(f->tenant);
	free(f->tenant_device);
	free(f->container);
	free(f->container_device);
	*f = (struct metrics_figures){ 0 };
}
