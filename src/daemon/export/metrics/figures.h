/*
 * Figures are the values of all metrics as plain data, gathered anew for each page (gather_figures.h). Each struct begins with
 * the labels of its samples. Texts point into the node or to constants, so figures are valid only while the page is made.
 * Times are in ns, shares in percent. A field whose validity bit is false has no sample.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/api/audit/audit.h"
#include "daemon/api/condition.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/export/metrics/exposition.h"
#include "daemon/kubelet/dra/dra.h"
#include "daemon/kubelet/plugin/plugin.h"
#include "daemon/state/tenant.h"
#include "daemon/space/space_groups.h"
#include "daemon/tasks/freezer/freezer.h"
#include "daemon/tasks/violation/violations.h"

/* Enough for the longest set of labels, that of struct metrics_container_device. */
#define METRICS_LABELS_MAX 384
#define METRICS_LIBRARIES 4
#define METRICS_HOST_MAX 65
#define METRICS_INDEX_MAX 12

struct metrics_daemon {
	char labels[1]; /* always empty: the daemon's samples have no labels in common */
	const char *version, *driver;
	char host[METRICS_HOST_MAX];
	uint64_t allocation_failures[ALLOCATION_FAILURES];
	/*
	 * percentage of all unpromised memory, and of all unpromised GPU time, that is on devices with tenants; invalid if
	 * has_free_... is false, because all memory or all time is promised
	 */
	bool has_free_memory, has_free_cores;
	double fragmented_memory_pct, fragmented_cores_pct;
	const struct namespace_uses *namespaces;
	bool is_simulated;
	uint64_t started_ns; /* since 1970 */
	uint64_t cpu_ns;
	bool resident_known;
	uint64_t resident_bytes;
	uint64_t connections, requests, refused; /* on the control socket */
	uint64_t driver_wait_ns;
	uint64_t pages, pages_ns; /* number of metrics pages made, and CPU time used for them */
	uint64_t tenants[TENANT_CONDITIONS];
	struct memory_wait_counts waits;
	uint64_t claims_in_force, claims_parked;
	struct claims_counts claims;
	uint64_t live_changes, live_changes_refused;
	struct audit_figures audit;
	struct violations_figures violations;
	struct space_figures space;
	struct swap_moves moves;
	uint64_t arena_budget_bytes, arena_reserved_bytes;
	bool has_plugin;
	struct plugin_figures plugin;
	bool has_dra;
	struct dra_figures dra;
	bool is_watching; /* GPU work is watched; if false, the fields below are unknown */
	uint64_t tasks, tasks_begun;
	uint64_t containers[FREEZER_STATES], containers_without;
	struct freezer_figures freezer;
};

struct metrics_card {
	char labels[METRICS_LABELS_MAX];
	const char *name, *policy, *uuid;
	char index[METRICS_INDEX_MAX];
	struct promise_card promised;
	struct arbitration_figures arbitration;
	bool used_known;
	uint64_t memory_bytes, used_bytes, kept_bytes, foreign_bytes, draining_bytes, context_bytes;
	/* policy feedback reads the processes' GPU use from NVML (feedback_sensor), not from allot's own measurement */
	bool has_sensor;
	uint64_t sensor_fallbacks;
	uint64_t swapped_out_bytes;
	bool is_healthy, is_cordoned;
	uint64_t faults[GPU_FAULT_KINDS];
};

struct metrics_tenant {
	char labels[METRICS_LABELS_MAX];
	const char *id, *on_full;
	/* a container engine has reported the names; unknown names are "", an unknown `container` is the tenant's name */
	bool has_pod;
	const char *namespace, *pod, *container;
	char claim_labels[EXPOSITION_LABELS_MAX]; /* labels of the ResourceClaim; "" if none */
	/* the tenant's elements of tenant_device */
	size_t device_first, device_count;
	/* processes by library version; the last element has all further versions */
	struct metrics_library {
		uint32_t version;
		uint64_t processes;
	} library[METRICS_LIBRARIES];
	unsigned library_count;
	uint64_t uid;
	enum tenant_condition condition;
	double priority;
	uint64_t processes, use_ns, gang_turns;
	uint64_t violations[VIOLATION_REASONS];
	bool is_corrupt, has_host_quota;
	uint64_t host_quota_bytes, host_used_bytes;
	bool waits, is_queued; /* waits: on_full is "wait"; is_queued: waits now */
	uint64_t wait_ns, wait_place, wait_passes, waited_ns;
	bool swaps;             /* on_full is "swap" */
	const char *swap_state; /* NULL: the tenant has no memory that can be moved */
	bool has_swap_figures;
	uint64_t arena_bytes, arena_ready_bytes, move_failures, move_ns;
	struct swap_moves moves;
};

struct metrics_tenant_device {
	char labels[METRICS_LABELS_MAX];
	/* labels of the metrics under HAMi's names; "" if those are not exported */
	char hami_labels[EXPOSITION_LABELS_MAX];
	const char *index, *uuid;
	struct promise promise;
	struct tenant_usage usage;
	struct lessee_figures lessee;
	uint64_t context_bytes, buffer_bytes;
	bool has_worked;
	uint64_t rested_ns; /* time since its last work on the device; valid if has_worked */
	bool waits;         /* on_full is "wait" */
	uint64_t granted_bytes, reserve_bytes, wanted_bytes;
	bool has_swap_figures;
	uint64_t swappable_bytes, swapped_bytes;
	uint64_t stays_contexts_bytes, stays_known_bytes, stays_other_bytes;
	double cores_guaranteed_pct, cores_lent_pct, cores_delta_pct;
	bool is_elastic;
};

struct metrics_container {
	char labels[METRICS_LABELS_MAX];
	bool is_frozen;
	uint64_t frozen_ns;
};

struct metrics_container_device {
	char labels[METRICS_LABELS_MAX];
	uint64_t held_bytes, used_ns;
};

struct metrics_figures {
	struct metrics_daemon daemon;
	size_t card_count, tenant_count, tenant_device_count, container_count,
		container_device_count;
	struct metrics_card *card;
	struct metrics_tenant *tenant;
	struct metrics_tenant_device *tenant_device;
	struct metrics_container *container;
	struct metrics_container_device *container_device;
};
