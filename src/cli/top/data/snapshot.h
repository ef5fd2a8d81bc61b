/*
 * The daemon's state at one moment: GPUs, tenants, and each tenant's share of each of its GPUs, from replies to `list` and
 * `tasks`. Pure; a snapshot never changes. A value that is missing or of the wrong type stays 0 or "", and its has_... flag
 * false.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SNAPSHOT_ID_MAX 40
#define SNAPSHOT_NAME_MAX 128
#define SNAPSHOT_WORD_MAX 24
#define SNAPSHOT_TEXT_MAX 256

struct top_card {
	int index;
	char name[SNAPSHOT_NAME_MAX];
	uint64_t memory_bytes;
	uint64_t promised_bytes;
	bool has_used;
	uint64_t used_bytes;
	bool has_busy;
	double busy_pct;
	double promised_cores_pct;
	char policy[SNAPSHOT_WORD_MAX];
	char trouble[SNAPSHOT_TEXT_MAX]; /* why the GPU takes no new tenants; "" if it takes any */
};

struct top_swap {
	bool is_set; /* some of the tenant's memory can be moved off its GPUs, or was moved */
	char kind[SNAPSHOT_WORD_MAX];
	char state[SNAPSHOT_WORD_MAX];
	uint64_t swapped_bytes;
	uint64_t failed;
	double moved_s;
};

struct top_tenant {
	char id[SNAPSHOT_ID_MAX];
	char name[SNAPSHOT_NAME_MAX];
	char state[SNAPSHOT_WORD_MAX];
	char on_full[SNAPSHOT_WORD_MAX];
	char container[SNAPSHOT_TEXT_MAX]; /* the first container of the tenant; "" if unknown */
	/* the action on the last process that bypassed the library and still lives; "" if none does */
	char offence[SNAPSHOT_WORD_MAX];
	uint64_t violations;
	int64_t priority;
	size_t processes;
	bool is_queued;
	uint64_t place; /* place in the queue for memory, from 1 */
	double queued_s;
	struct top_swap swap;
};

struct top_share {
	size_t tenant; /* index in snapshot.tenants */
	int card;      /* the GPU's index in the daemon */
	bool has_quota;
	uint64_t quota_bytes;
	uint64_t used_bytes;
	uint64_t swapped_bytes; /* part of used_bytes that was moved off this GPU */
	bool has_asked;
	double requested_pct;  /* guarantee that was requested */
	double guaranteed_pct; /* guarantee in force: lower if guarantees sum to over 100 % */
	double limit_pct;
	bool has_limit_now;
	double limit_now_pct; /* limit in force, with lent time; limit_pct if not has_limit_now */
	double lent_pct;
	bool has_got;
	double got_1s_pct, got_60s_pct;
	bool has_steps; /* some steps ended recently, so the values below are set */
	double step_p50_ms, step_p99_ms, steps_per_s;
	/*
	 * Totals since the tenant was made. expired: leases after which work did not end by the deadline. overrun_s: GPU time
	 * used after such a deadline, or without a lease. denied: refused allocations.
	 */
	double used_s, waited_s, overrun_s;
	uint64_t denied, leases, expired;
};

/* A container that is frozen, or whose memory is off its GPUs or is being moved (is_stopped() in snapshot.c). */
struct top_frozen {
	char name[SNAPSHOT_TEXT_MAX];
	char state[SNAPSHOT_WORD_MAX]; /* waiting, paused, leaving, swapped, returning, stuck */
	double frozen_s;
};

struct snapshot {
	uint64_t at_ns; /* clock_now_ns() when the daemon was asked */
	size_t card_count, tenant_count, share_count, frozen_count;
	struct top_card *cards;
	struct top_tenant *tenants;
	struct top_share *shares; /* sorted by tenant, in the daemon's order */
	struct top_frozen *frozen;
};

/* `list` and `tasks` are replies of the daemon, or NULL. The caller owns the snapshot; NULL if out of memory. */
struct snapshot *snapshot_make(const char *list, const json_t *tasks, uint64_t at_ns);

/* NULL is allowed; returns NULL. */
struct snapshot *snapshot_free(struct snapshot *snapshot);

static inline void cleanup_snapshot_pointer(struct snapshot **snapshot)
{
	snapshot_free(*snapshot);
}

#define cleanup_snapshot cleanup(cleanup_snapshot_pointer)
