/*
 * A metric is a row of a table (metrics_rows.c, rows_hami.c, rows_gpu_manager.c): name, type, unit, labels, help, where its
 * value is in the figures, and the function that writes its samples. The page of samples, `allotd --list-metrics` and the
 * documentation are made from the tables. Not thread safe.
 */
#pragma once

#include <stdio.h>

#include "daemon/export/metrics/exposition.h"
#include "daemon/export/metrics/figures.h"

enum metric_kind {
	METRIC_WHOLE, /* uint64_t */
	METRIC_NS,    /* uint64_t nanoseconds, written as seconds */
	METRIC_PCT,   /* double in percent, written as a ratio */
	METRIC_REAL,  /* double */
	METRIC_FLAG,  /* bool, 0 or 1 */
	METRIC_OWN,   /* the row's `emit` finds the value itself */
};

struct metric;
/* Writes the metric's samples. */
typedef void metric_emit(const struct metric *m, const struct metrics_figures *f,
			 struct exposition *x);

struct metric {
	const char *name;
	enum exposition_type type;
	metric_emit *emit;
	const char *labels; /* names of the labels, for the documentation */
	enum metric_kind kind;
	size_t value; /* offset of the value in the struct that `emit` walks */
	const char *unit;
	const char *help;
	size_t if_known; /* offset of a validity bit; 0: always valid */
};

extern const struct metric metrics_rows[], metrics_rows_hami[], metrics_rows_gpu_manager[];
extern const size_t metrics_row_count, metrics_row_count_hami, metrics_row_count_gpu_manager;

struct metric_set {
	const struct metric *rows;
	size_t count;
};

/* Writes all rows of all sets as one page, which the caller frees. Returns 0 or -ENOMEM. */
int metrics_write_sets(const struct metric_set *sets, size_t set_count,
		       const struct metrics_figures *f, char **ret_text, size_t *ret_length);

/* Prints the rows of all sets as a Markdown table. */
void metrics_print_list(FILE *out);

/* Writes one sample: m's value in the struct `thing`, unless its validity bit is false (emit.c). */
void emit_value(const struct metric *m, const void *thing, const char *labels, struct exposition *x);

/* One sample per card, tenant, container and so on (emit.c). */
metric_emit emit_daemon, emit_cards, emit_tenants, emit_tenant_devices, emit_containers,
	emit_container_devices;
/* One sample per state, reason or direction, or samples whose labels carry the information (emit_labels.c). */
metric_emit emit_build_info, emit_card_info, emit_parts, emit_tenant_counts, emit_tenant_info,
	emit_tenant_states, emit_elastic_reasons, emit_steps, emit_faults, emit_violations,
	emit_space_faults, emit_swap_states, emit_swap_stays, emit_tenant_moves,
	emit_allocation_failures, emit_fragmentation, emit_namespaces, emit_libraries,
	emit_tenant_claims, emit_bindings, emit_container_counts;
/* Other projects' names and labels (emit_names.c). */
metric_emit emit_hami_cards, emit_hami_devices, emit_gpu_manager_use, emit_gpu_manager_asked;
