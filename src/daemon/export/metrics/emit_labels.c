/* Writes the samples of metrics whose labels carry the information, such as a state, a reason or a version. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/export/metrics/row.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/tasks/namespace_use.h"

/* Copies the labels of a struct in figures.h, so that add() can append more labels. */
static struct exposition_labels labels_of(const char *labels)
{
	struct exposition_labels more;
	snprintf(more.text, sizeof(more.text), "%s", labels);
	return more;
}

static void add(struct exposition_labels *more, const char *key, const char *value)
{
	exposition_label(more->text, sizeof(more->text), key, value);
}

static void sample(struct exposition *x, const struct metric *m, const char *labels,
		   const char *key, const char *value, uint64_t number)
{
	struct exposition_labels more = labels_of(labels);
	add(&more, key, value);
	exposition_whole(x, m->name, more.text, number);
}

void emit_build_info(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	struct exposition_labels more = labels_of("");
	add(&more, "version", f->daemon.version);
	add(&more, "driver", f->daemon.driver);
	add(&more, "simulated", f->daemon.is_simulated ? "true" : "false");
	exposition_whole(x, m->name, more.text, 1);
}

void emit_card_info(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->card_count; i++) {
		struct exposition_labels more = labels_of(f->card[i].labels);
		add(&more, "name", f->card[i].name);
		add(&more, "policy", f->card[i].policy);
		exposition_whole(x, m->name, more.text, 1);
	}
}

/* Each row is one sample: the metric's name, the value of the metric's only label, and the field of struct metrics_daemon. */
static const struct {
	const char *metric, *label;
	size_t value;
} parts[] = {
#define PART(metric, label, field) \
	{ \
		metric, label, FIELD(metrics_daemon, field, uint64_t) \
	}
	PART("allot_swap_moves_total", "out", moves.out),
	PART("allot_swap_moves_total", "back", moves.back),
	PART("allot_memory_waits_ended_total", "granted", waits.ended[WAIT_GRANTED]),
	PART("allot_memory_waits_ended_total", "given_up", waits.ended[WAIT_GIVEN_UP]),
	PART("allot_memory_waits_ended_total", "left", waits.ended[WAIT_LEFT]),
	PART("allot_claims", "in_force", claims_in_force),
	PART("allot_claims", "parked", claims_parked),
	PART("allot_claims_ended_total", "released", claims.released),
	PART("allot_claims_ended_total", "expired", claims.expired),
	PART("allot_claims_refused_total", "request", claims.refused_request),
	PART("allot_claims_refused_total", "full", claims.refused_full),
	PART("allot_claims_refused_total", "store", claims.refused_store),
	PART("allot_claims_refused_total", "other", claims.refused_other),
	PART("allot_violation_actions_total", "frozen", violations.frozen),
	PART("allot_violation_actions_total", "stopped", violations.stopped),
	PART("allot_violation_actions_total", "told_to_end", violations.told_to_end),
	PART("allot_violation_actions_total", "killed", violations.killed),
	PART("allot_violation_actions_total", "failed", violations.failed),
};

void emit_parts(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	const char *base = (const char *)&f->daemon;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(parts[i].metric, m->name))
			sample(x, m, "", m->labels, parts[i].label,
			       *(const uint64_t *)(const void *)(base + parts[i].value));
}

void emit_tenant_counts(const struct metric *m, const struct metrics_figures *f,
			struct exposition *x)
{
	for (unsigned i = 0; i < TENANT_CONDITIONS; i++)
		sample(x, m, "", "state", tenant_condition_name((enum tenant_condition)i),
		       f->daemon.tenants[i]);
}

void emit_tenant_info(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_count; i++) {
		const struct metrics_tenant *t = &f->tenant[i];
		struct exposition_labels more = labels_of(t->labels);
		char uid[24];
		snprintf(uid, sizeof(uid), "%" PRIu64, t->uid);
		add(&more, "id", t->id);
		add(&more, "uid", uid);
		add(&more, "on_full", t->on_full);
		exposition_whole(x, m->name, more.text, 1);
	}
}

void emit_tenant_states(const struct metric *m, const struct metrics_figures *f,
			struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_count; i++)
		for (unsigned k = 0; k < TENANT_CONDITIONS; k++)
			sample(x, m, f->tenant[i].labels, "state",
			       tenant_condition_name((enum tenant_condition)k),
			       f->tenant[i].condition == k);
}

void emit_elastic_reasons(const struct metric *m, const struct metrics_figures *f,
			  struct exposition *x)
{
	static const enum lend_reason reasons[] = { LEND_OFF, LEND_UNNEEDED, LEND_LENT,
						    LEND_RECLAIMED };
	for (size_t i = 0; i < f->tenant_device_count; i++) {
		const struct metrics_tenant_device *d = &f->tenant_device[i];
		for (size_t k = 0; d->is_elastic && k < sizeof(reasons) / sizeof(reasons[0]); k++)
			sample(x, m, d->labels, "reason", lend_reason_name(reasons[k]),
			       d->lessee.lend_reason == reasons[k]);
	}
}

void emit_steps(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	char name[64];
	for (size_t i = 0; i < f->tenant_device_count; i++) {
		const struct metrics_tenant_device *d = &f->tenant_device[i];
		if (!d->lessee.steps.count)
			continue;
		struct exposition_labels p50 = labels_of(d->labels), p99 = p50;
		add(&p50, "quantile", "0.5");
		add(&p99, "quantile", "0.99");
		if (d->lessee.steps.is_known) {
			exposition_seconds(x, m->name, p50.text, d->lessee.steps.p50_ns);
			exposition_seconds(x, m->name, p99.text, d->lessee.steps.p99_ns);
		}
		snprintf(name, sizeof(name), "%s_sum", m->name);
		exposition_seconds(x, name, d->labels, d->lessee.steps.sum_ns);
		snprintf(name, sizeof(name), "%s_count", m->name);
		exposition_whole(x, name, d->labels, d->lessee.steps.count);
	}
}

void emit_faults(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	static const char *const kinds[GPU_FAULT_KINDS] = {
		[GPU_FAULT_XID] = "xid", [GPU_FAULT_ECC] = "ecc"
	};
	for (size_t i = 0; i < f->card_count; i++)
		for (unsigned k = 0; k < GPU_FAULT_KINDS; k++)
			sample(x, m, f->card[i].labels, "kind", kinds[k], f->card[i].faults[k]);
}

void emit_violations(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_count; i++)
		for (unsigned k = 0; k < VIOLATION_REASONS; k++)
			sample(x, m, f->tenant[i].labels, "reason",
			       violation_reason_name((enum violation_reason)k),
			       f->tenant[i].violations[k]);
}

void emit_space_faults(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	const struct space_figures *s = &f->daemon.space;
	for (unsigned i = 0; i < SPACE_FAULT_KINDS; i++)
		sample(x, m, "", "reason", space_fault_name(i), s->faults[i]);
}

void emit_swap_states(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_count; i++) {
		const struct metrics_tenant *t = &f->tenant[i];
		for (unsigned k = 0; t->swap_state && k < SWAP_TEXTS; k++)
			sample(x, m, t->labels, "state", swap_text(k),
			       !strcmp(t->swap_state, swap_text(k)));
	}
}

void emit_swap_stays(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_device_count; i++) {
		const struct metrics_tenant_device *d = &f->tenant_device[i];
		if (!d->has_swap_figures)
			continue;
		sample(x, m, d->labels, "reason", "contexts", d->stays_contexts_bytes);
		sample(x, m, d->labels, "reason", "known_to_others", d->stays_known_bytes);
		sample(x, m, d->labels, "reason", "not_movable", d->stays_other_bytes);
	}
}

void emit_tenant_moves(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_count; i++)
		if (f->tenant[i].swaps) {
			sample(x, m, f->tenant[i].labels, "direction", "out",
			       f->tenant[i].moves.out);
			sample(x, m, f->tenant[i].labels, "direction", "back",
			       f->tenant[i].moves.back);
		}
}

void emit_container_counts(const struct metric *m, const struct metrics_figures *f,
			   struct exposition *x)
{
	for (unsigned k = 0; f->daemon.is_watching && k < FREEZER_STATES; k++)
		sample(x, m, "", "state", freezer_state_text((enum freezer_state)k),
		       f->daemon.containers[k]);
}

void emit_allocation_failures(const struct metric *m, const struct metrics_figures *f,
			      struct exposition *x)
{
	static const char *const reasons[ALLOCATION_FAILURES] = {
		[ALLOCATION_NO_ROOM] = "no_room",
		[ALLOCATION_NO_DEVICE] = "no_device",
		[ALLOCATION_CORDONED] = "cordoned",
		[ALLOCATION_UNHEALTHY] = "unhealthy",
		[ALLOCATION_NAME_IN_USE] = "name_in_use",
		[ALLOCATION_INVALID] = "invalid",
		[ALLOCATION_OTHER] = "other",
	};
	for (unsigned i = 0; i < ALLOCATION_FAILURES; i++)
		sample(x, m, "", "reason", reasons[i], f->daemon.allocation_failures[i]);
}

void emit_fragmentation(const struct metric *m, const struct metrics_figures *f,
			struct exposition *x)
{
	if (f->daemon.has_free_memory)
		exposition_real(x, m->name, "resource=\"memory\"",
				f->daemon.fragmented_memory_pct / 100);
	if (f->daemon.has_free_cores)
		exposition_real(x, m->name, "resource=\"cores\"",
				f->daemon.fragmented_cores_pct / 100);
}

void emit_namespaces(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (unsigned i = 0; f->daemon.namespaces && i < f->daemon.namespaces->count; i++) {
		const struct namespace_use *u = &f->daemon.namespaces->list[i];
		struct exposition_labels labels = { "" };
		add(&labels, "namespace", u->name);
		emit_value(m, u, labels.text, x);
	}
}

void emit_libraries(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_count; i++)
		for (unsigned k = 0; k < f->tenant[i].library_count; k++) {
			const struct metrics_library *l = &f->tenant[i].library[k];
			char version[32] = "";
			if (l->version)
				snprintf(version, sizeof(version), "%u.%u.%u", l->version >> 16,
					 l->version >> 8 & 255, l->version & 255);
			sample(x, m, f->tenant[i].labels, "version", version, l->processes);
		}
}

void emit_tenant_claims(const struct metric *m, const struct metrics_figures *f,
			struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_count; i++)
		if (*f->tenant[i].claim_labels)
			exposition_whole(x, m->name, f->tenant[i].claim_labels, 1);
}

void emit_bindings(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_count; i++)
		for (size_t k = 0; f->tenant[i].has_pod && k < f->tenant[i].device_count; k++) {
			const struct metrics_tenant *t = &f->tenant[i];
			struct exposition_labels more = labels_of(
				f->tenant_device[t->device_first + k].labels);
			add(&more, "namespace", t->namespace);
			add(&more, "pod", t->pod);
			add(&more, "container", t->container);
			exposition_whole(x, m->name, more.text, 1);
		}
}
