/* Replies to `list`, as a daemon gives them, for the tests of src/cli/top. */
#pragma once

#include "../test.h"

#include <jansson.h>

#include "base/cleanup.h"
#include "client/client.h"
#include "cli/top/data/history.h"
#include "cli/top/data/snapshot.h"

#define GIB (1LL << 30)
#define SECOND UINT64_C(1000000000)

static inline json_t *list_new(int cards)
{
	json_t *devices = json_array();

	for (int i = 0; i < cards; i++)
		json_array_append_new(
			devices,
			json_pack("{s:i, s:s, s:s, s:I, s:I, s:f, s:I, s:f, s:s, s:n, s:b}",
				  "index", i, "name", "NVIDIA H200", "policy", "lease",
				  "memory_bytes", (json_int_t)140 * GIB, "memory_used_bytes",
				  (json_int_t)3 * GIB, "busy_pct", 90.0, "promised_bytes",
				  (json_int_t)40 * GIB, "promised_cores_pct", 50.0, "health",
				  "healthy", "health_reason", "cordoned", 0));
	return json_pack("{s:i, s:o, s:[]}", "version", 1, "devices", devices, "tenants");
}

/* Adds a tenant with one card. Returns the tenant, which the list owns and the caller may change. */
static inline json_t *list_add(json_t *list, const char *name, const char *state, int card,
			       double got_pct)
{
	json_t *tenants = json_object_get(list, "tenants");
	char id[32];
	json_t *tenant;

	snprintf(id, sizeof(id), "id%zu", json_array_size(tenants));
	tenant = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:n, s:n, s:[], s:[], s:[{s:i}], s:[{"
			   "s:i, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:i, s:f}]}",
			   "name", name, "id", id, "state", state, "on_full", "fail", "priority", 0,
			   "violations", 0, "memory_wait", "swap", "containers", "offenders",
			   "processes", "pid", 123, "devices", "index", card, "memory_quota_bytes",
			   (json_int_t)4 * GIB, "memory_used_bytes", (json_int_t)1 * GIB,
			   "cores_pct", 30.0, "cores_limit_pct", 60.0, "lent_pct", 0.0,
			   "got_1s_pct", got_pct, "got_60s_pct", 29.5, "waited_s", 2.0, "used_s",
			   10.0, "denied", 0, "leases", 100, "expired", 0, "overrun_s", 0.0);
	assert_non_null(tenant);
	json_array_append_new(tenants, tenant);
	return tenant;
}

static inline json_t *list_device(json_t *tenant)
{
	return json_array_get(json_object_get(tenant, "devices"), 0);
}

static inline bool is_near(double a, double b, double most)
{
	return a - b < most && b - a < most;
}

/* Returns the snapshot of a list, which the caller frees, and adds it to the history unless that is NULL. */
static inline struct snapshot *list_look_with(const json_t *list, const json_t *tasks,
					      uint64_t at_ns, struct history *history)
{
	cleanup_free char *text = json_dumps(list, JSON_COMPACT);
	struct snapshot *snapshot = snapshot_make(text, tasks, at_ns);

	assert_non_null(snapshot);
	if (history)
		assert_int_equal(history_update(history, snapshot), 0);
	return snapshot;
}

static inline struct snapshot *list_look(const json_t *list, uint64_t at_ns, struct history *history)
{
	return list_look_with(list, NULL, at_ns, history);
}
