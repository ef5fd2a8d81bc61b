/*
 * A metric is a row of a table (rows*.c): name, type, unit, labels, help, where its value is in the figures, and the
 * function that writes its samples. The page of samples, `allotd --list-metrics` and the documentation are made from the
 * tables. Not thread safe.
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

struct metric {
	const char *name;
	enum exposition_type type;
	void (*emit)(const struct metric *metric, const struct metrics_figures *f,
		     struct exposition *x);
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

/* `emit` functions for one sample per card, tenant, container and so on (emit.c). */
void emit_daemon(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_cards(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_tenants(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_tenant_devices(const struct metric *m, const struct metrics_figures *f,
			 struct exposition *x);
void emit_containers(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_container_devices(const struct metric *m, const struct metrics_figures *f,
			    struct exposition *x);
/* `emit` functions for one sample per state, reason or direction, or whose labels carry the information (emit_labels.c). */
void emit_build_info(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_card_info(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_moves(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_tenant_counts(const struct metric *m, const struct metrics_figures *f,
			struct exposition *x);
void emit_tenant_info(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_tenant_states(const struct metric *m, const struct metrics_figures *f,
			struct exposition *x);
void emit_elastic_reasons(const struct metric *m, const struct metrics_figures *f,
			  struct exposition *x);
void emit_steps(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_wait_ends(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_claims(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_claims_ended(const struct metric *m, const struct metrics_figures *f,
		       struct exposition *x);
void emit_claims_refused(const struct metric *m, const struct metrics_figures *f,
			 struct exposition *x);
void emit_faults(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_violations(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_space_faults(const struct metric *m, const struct metrics_figures *f,
		       struct exposition *x);
void emit_violation_actions(const struct metric *m, const struct metrics_figures *f,
			    struct exposition *x);
void emit_swap_states(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_swap_stays(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_tenant_moves(const struct metric *m, const struct metrics_figures *f,
		       struct exposition *x);
void emit_allocation_failures(const struct metric *m, const struct metrics_figures *f,
			      struct exposition *x);
void emit_fragmentation(const struct metric *m, const struct metrics_figures *f,
			struct exposition *x);
void emit_namespace_time(const struct metric *m, const struct metrics_figures *f,
			 struct exposition *x);
void emit_namespace_memory(const struct metric *m, const struct metrics_figures *f,
			   struct exposition *x);
void emit_libraries(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_tenant_claims(const struct metric *m, const struct metrics_figures *f,
			struct exposition *x);
void emit_bindings(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
/* `emit` functions for other projects' names and labels (emit_names.c). */
void emit_hami_cards(const struct metric *m, const struct metrics_figures *f, struct exposition *x);
void emit_hami_devices(const struct metric *m, const struct metrics_figures *f,
		       struct exposition *x);
void emit_gpu_manager_use(const struct metric *m, const struct metrics_figures *f,
			  struct exposition *x);
void emit_gpu_manager_memory(const struct metric *m, const struct metrics_figures *f,
			     struct exposition *x);
void emit_gpu_manager_use_asked(const struct metric *m, const struct metrics_figures *f,
				struct exposition *x);
void emit_gpu_manager_memory_asked(const struct metric *m, const struct metrics_figures *f,
				   struct exposition *x);
/* `emit` function for one sample per state of a container (emit_labels.c). */
void emit_container_counts(const struct metric *m, const struct metrics_figures *f,
			   struct exposition *x);
