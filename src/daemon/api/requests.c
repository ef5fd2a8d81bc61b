/* Handles the requests create, attach, set, unqueue, remove and space. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "daemon/memory/memory_waiters.h"
#include "daemon/api/request_devices.h"
#include "daemon/api/request_handlers.h"
#include "daemon/api/session.h"
#include "daemon/api/terms_change.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/elastic_terms.h"
#include "daemon/state/tenant_state.h"
#include "daemon/tasks/commands/command_cgroups.h"
#include "daemon/util/peer.h"
#include "daemon/util/procfs.h"

#define WAIT_TIMEOUT_MOST_S 31536000.0 /* a year */

static json_t *terms_to_json(const struct tenant *tenant)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		const struct tenant_device_terms *d = &tenant->terms.device[i];
		json_array_append_new(
			list, json_pack("{s:i, s:s, s:I, s:b, s:f, s:f}", "index", d->card->index,
					"uuid", d->card->info.uuid_text, "memory_quota_bytes",
					(json_int_t)d->promise.quota_bytes, "memory_given",
					d->promise.memory_given, "cores_pct", d->promise.cores_pct,
					"cores_limit_pct", d->promise.limit_pct));
	}
	return list;
}

void request_describe_tenant(const struct tenant *tenant, json_t *reply)
{
	char path[NODE_PATH_MAX];
	tenant_path(tenant, "allot.sock", path);
	json_object_set_new(reply, "id", json_string(tenant->terms.id));
	json_object_set_new(reply, "name", json_string(tenant->terms.name));
	json_object_set_new(reply, "socket", json_string(path));
	json_object_set_new(reply, "devices", terms_to_json(tenant));
	space_describe(tenant, reply);
}

void request_warn_of_overcommit(const struct tenant *tenant, json_t *reply)
{
	json_t *warnings = json_array();
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		const struct tenant_device_terms *d = &tenant->terms.device[i];
		double sum = node_promised(tenant->node, d->card, NULL).promised_cores_pct;
		double in_force = tenant->device[i].guaranteed_pct;
		char text[160];
		if (!(in_force < d->promise.cores_pct))
			continue;
		snprintf(text, sizeof(text),
			 "GPU %u: all guarantees add up to %.4g %%: of the %.4g %% asked for, %.4g %% are guaranteed for now",
			 d->card->index, sum, d->promise.cores_pct, in_force);
		log_warning_of(tenant_log_key(&tenant->terms), "tenant '%s': %s",
			       tenant->terms.name, text);
		json_array_append_new(warnings, json_string(text));
	}
	if (json_array_size(warnings) > 0)
		json_object_set(reply, "warnings", warnings);
	json_decref(warnings);
}

/* Takes the requested name, or else the first free one of "p<pid>", "p<pid>-2" and so on. */
static int choose_name(struct session *session, const json_t *request, char *name, struct error *err)
{
	const char *wanted = NULL;
	int64_t pid = session->pid;
	int r = json_read_string(request, "name", &wanted, err);
	if (r < 0)
		return r;
	if (r > 0) {
		r = parse_name(wanted, err);
		if (r < 0)
			return error_add(err, r, "name");
		const struct tenant *used = node_find_tenant(session->node, wanted);
		if (used && used->terms.is_retired)
			return error_set(
				err, EEXIST,
				"name '%s' is in use: that tenant was removed, but %u of its processes still live: end them, or choose another name",
				wanted, tenant_living_count(used));
		snprintf(name, REGION_NAME_MAX, "%s", wanted);
		return claims_check_name(session->node, wanted, err);
	}
	r = json_read_int(request, "pid", 1, INT32_MAX, &pid, err);
	if (r < 0)
		return r;
	snprintf(name, REGION_NAME_MAX, "p%" PRId64, pid);
	for (unsigned i = 2; claims_has_name(session->node, name); i++)
		snprintf(name, REGION_NAME_MAX, "p%" PRId64 "-%u", pid, i);
	return 0;
}

static int choose_devices(struct node *node, const json_t *request, struct tenant_terms *terms,
			  struct error *err)
{
	struct device_request list[REGION_MAX_DEVICES] = { 0 };
	int count = request_choose_devices(node, request, list, err);
	if (count < 0)
		return count;
	for (int i = 0; i < count; i++) {
		struct promise_card card = node_promised(node, list[i].card, NULL);
		list[i].terms.waits = terms->on_full == ON_FULL_WAIT;
		card.is_movable = terms->on_full == ON_FULL_SWAP;
		int r = promise_decide(&card, NULL, 0, &list[i].terms, &terms->device[i].promise,
				       err);
		if (r < 0)
			return r;
		terms->device[i].card = list[i].card;
	}
	terms->device_count = (unsigned)count;
	return 0;
}

/* Returns 1 if the request has "on_violation", 0 if not, or -errno. */
static int read_on_violation(const json_t *request, enum on_violation *on_violation,
			     struct error *err)
{
	const char *text = NULL;
	int r = json_read_string(request, "on_violation", &text, err);
	if (r > 0 && on_violation_parse(text, on_violation) < 0)
		return error_set(err, EINVAL,
				 "on_violation: '%.20s': must be report, freeze or end", text);
	return r;
}

/*
 * If the request has "command":true, the caller's process becomes the tenant's command: all its descendants belong to the
 * tenant, even those that do not register.
 */
static int note_command(const struct session *session, const json_t *request, struct tenant *tenant,
			struct error *err)
{
	bool is_command = false;
	uint64_t start_time;
	int r = json_read_bool(request, "command", &is_command, err);
	if (r < 0 || !is_command || !session->peer || session->pid <= 0)
		return r;
	/* Check the pidfd after reading the start time: if the caller has ended, its pid may be another process's. */
	r = procfs_start_time(session->pid, &start_time);
	if (r < 0 && r != -ESRCH)
		return error_set_errno(err, -r, "\"command\": can't read /proc/%d/stat",
				       session->pid);
	if (r < 0 || !session->peer->confirmed || !peer_is_alive(session->peer))
		return error_set(
			err, ESRCH,
			"\"command\": process %d opened this connection, but has ended or did not "
			"send this request: one process must connect, send the request and start the "
			"command",
			session->pid);
	tenant->command_pid = session->pid;
	tenant->command_start = start_time;
	return command_cgroups_add(tenant, session->peer, err);
}

static int read_wait_timeout(const json_t *request, struct tenant_terms *terms, struct error *err)
{
	double seconds = 0;
	int r = json_read_number(request, "wait_timeout_s", &seconds, err);
	if (r <= 0)
		return r;
	if (terms->on_full != ON_FULL_WAIT)
		return error_set(err, EINVAL, "wait_timeout_s: possible only with on_full 'wait'");
	if (!(seconds > 0 && seconds <= WAIT_TIMEOUT_MOST_S))
		return error_set(err, EINVAL,
				 "wait_timeout_s: %.10g: must be above 0 and at most %.10g",
				 seconds, WAIT_TIMEOUT_MOST_S);
	/* 1 ns more, because 0 would mean no limit */
	terms->wait_timeout_ns = (uint64_t)(seconds * (double)NSEC_PER_SEC) + 1;
	return 0;
}

static int read_terms(struct session *session, const json_t *request, struct tenant_terms *ret,
		      struct error *err)
{
	struct tenant_terms terms = { .uid = session->uid };
	struct sharing_request wanted_sharing = { 0 };
	int64_t host_bytes = 0;
	int r = choose_name(session, request, terms.name, err);
	if (r >= 0)
		r = request_read_priority(request, &terms.priority, err);
	if (r >= 0)
		r = json_read_bool(request, "hold", &terms.hold, err);
	if (r >= 0)
		r = request_read_on_full(request, &terms.on_full, err);
	if (r >= 0)
		r = elastic_choice_from_json(request, &terms.elastic, err);
	if (r >= 0)
		r = read_on_violation(request, &terms.on_violation, err);
	if (r >= 0) {
		r = json_read_int(request, "host_memory_bytes", 0, INT64_MAX, &host_bytes, err);
		terms.has_host_quota = r > 0;
		terms.host_quota_bytes = (uint64_t)host_bytes;
	}
	if (r >= 0)
		r = request_read_swap_arena(request, &terms.swap_arena_bytes, err);
	if (r >= 0)
		r = read_wait_timeout(request, &terms, err);
	if (r >= 0)
		r = space_read_request(request, &wanted_sharing, err);
	if (r >= 0)
		r = choose_devices(session->node, request, &terms, err);
	if (r >= 0)
		r = swap_check_terms(session->node, &terms, err);
	if (r >= 0)
		r = space_choose(session->node, &wanted_sharing, "", &terms, err);
	if (r >= 0)
		r = claims_make_tenant_id(session->node, terms.id, err);
	if (r < 0)
		return r;
	*ret = terms;
	return 0;
}

static enum allocation_failure failure_of(int r)
{
	static const struct {
		int code;
		enum allocation_failure why;
	} rows[] = {
		{ ENOSPC, ALLOCATION_NO_ROOM },     { ENODEV, ALLOCATION_NO_DEVICE },
		{ EBUSY, ALLOCATION_CORDONED },     { EIO, ALLOCATION_UNHEALTHY },
		{ EEXIST, ALLOCATION_NAME_IN_USE }, { EINVAL, ALLOCATION_INVALID },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].code == -r)
			return rows[i].why;
	return ALLOCATION_OTHER;
}

static int create(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct tenant_terms terms;
	struct tenant *tenant;
	int r = session_check_tenants(session, err);
	if (r >= 0)
		r = read_terms(session, request, &terms, err);
	if (r < 0)
		return r;
	r = tenant_new(session->node, &terms, &tenant, err);
	if (r < 0)
		return r;
	r = note_command(session, request, tenant, err);
	if (r >= 0)
		r = tenant_state_save(tenant, true, err);
	if (r >= 0 && terms.hold)
		r = session_hold(session, tenant, err);
	if (r < 0) {
		command_cgroups_end(tenant, NULL);
		tenant_remove(tenant, NULL);
		return r;
	}
	request_describe_tenant(tenant, reply);
	request_warn_of_overcommit(tenant, reply);
	log_info_of(terms.uid, "tenant '%s' (%s): made by uid %u", terms.name, terms.id,
		    (unsigned)terms.uid);
	return 0;
}

int request_create(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	int r = create(session, request, reply, err);
	if (r < 0)
		session->node->allocation_failures[failure_of(r)]++;
	return r;
}

int request_attach(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct tenant *tenant;
	int r = session_find_own(session, request, json_object_get(request, "id") ? "id" : "name",
				 &tenant, err);
	if (r >= 0)
		r = tenant_check_not_retired(tenant, err);
	if (r >= 0)
		r = note_command(session, request, tenant, err);
	if (r >= 0)
		r = session_hold(session, tenant, err);
	if (r < 0)
		return r;
	tenant_save_soon(tenant);
	request_describe_tenant(tenant, reply);
	return 0;
}

static int find_device(const struct tenant *tenant, const struct device_request *wanted,
		       struct error *err)
{
	if (!wanted->card && tenant->terms.device_count == 1)
		return 0;
	if (!wanted->card)
		return error_set(err, EINVAL,
				 "tenant '%s' has %u GPUs: say which one to change, with --gpu",
				 tenant->terms.name, tenant->terms.device_count);
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		if (tenant->terms.device[i].card == wanted->card)
			return (int)i;
	return error_set(err, ENODEV, "tenant '%s' does not use GPU %u: allot ps lists its GPUs",
			 tenant->terms.name, wanted->card->index);
}

/* Returns 1 if the request has "on_full", 0 if not, or -errno. */
static int read_on_full_change(const json_t *request, const struct tenant *tenant,
			       struct terms_change *change, struct error *err)
{
	const char *text = NULL;
	enum on_full on_full;
	int r = json_read_string(request, "on_full", &text, err);
	if (r <= 0)
		return r;
	if (on_full_parse(text, &on_full) < 0)
		return error_set(err, EINVAL, "on_full: '%.20s': must be fail or wait", text);
	r = terms_change_on_full(tenant, change, on_full, err);
	return r < 0 ? r : 1;
}

/*
 * If on_full changes, requests the quota again. A quota is promised only with on_full `fail`, so a change to `fail` needs that
 * much unpromised memory.
 */
static int change_device(struct tenant *tenant, struct terms_change *change, unsigned device,
			 const struct promise_request *terms, struct error *err)
{
	const struct promise *now = &tenant->terms.device[device].promise;
	struct promise_request wanted = *terms;
	if (!wanted.has_memory && change->on_full != tenant->terms.on_full) {
		wanted.has_memory = true;
		wanted.memory_is_unpromised = !now->memory_given;
		wanted.memory_bytes = now->quota_bytes;
	}
	return terms_change_device(tenant, change, device, NULL, &wanted, err);
}

static int change_devices(struct tenant *tenant, struct terms_change *change,
			  const struct device_request *list, int count, struct error *err)
{
	const struct promise_request nothing = { 0 };
	for (int i = 0; i < count; i++) {
		int d = find_device(tenant, &list[i], err);
		if (d < 0)
			return d;
		if (change->changes[d])
			return error_set(err, EINVAL, "devices: a GPU is named twice");
		int r = change_device(tenant, change, (unsigned)d, &list[i].terms, err);
		if (r < 0)
			return r;
	}
	for (unsigned d = 0; d < tenant->terms.device_count; d++) {
		if (change->changes[d] || change->on_full == tenant->terms.on_full)
			continue;
		int r = change_device(tenant, change, d, &nothing, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int request_set(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct device_request list[REGION_MAX_DEVICES] = { 0 };
	struct tenant *tenant;
	int r = session_find_own(session, request, "name", &tenant, err);
	if (r >= 0)
		r = tenant_check_not_retired(tenant, err);
	if (r < 0)
		return r;
	struct terms_change change = terms_change_of(tenant);
	int has_elastic = elastic_choice_from_json(request, &change.elastic, err);
	if (has_elastic < 0)
		return has_elastic;
	int has_priority = request_read_priority(request, &change.priority, err);
	if (has_priority < 0)
		return has_priority;
	int count = request_read_devices(session->node, request, list, err);
	if (count < 0)
		return count;
	int has_on_violation = read_on_violation(request, &change.on_violation, err);
	if (has_on_violation < 0)
		return has_on_violation;
	int has_on_full = read_on_full_change(request, tenant, &change, err);
	if (has_on_full < 0)
		return has_on_full;
	if (count == 0 && !has_elastic && !has_priority && !has_on_violation && !has_on_full)
		return error_set(
			err, EINVAL,
			"devices: missing, as are priority, elastic, on_full and on_violation: set at least one of these");
	r = change_devices(tenant, &change, list, count, err);
	if (r >= 0)
		r = claims_set_terms(session->node->claims, tenant, &change, err);
	if (r < 0)
		return r;
	json_object_set_new(reply, "devices", terms_to_json(tenant));
	json_object_set_new(reply, "priority", json_integer(tenant->terms.priority));
	json_object_set_new(reply, "on_full", json_string(on_full_name(tenant->terms.on_full)));
	request_warn_of_overcommit(tenant, reply);
	return 0;
}

int request_unqueue(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct tenant *tenant;
	int r = session_find_own(session, request, "name", &tenant, err);
	if (r >= 0)
		memory_wait_give_up(tenant);
	return r;
}

int request_remove(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct tenant *tenant;
	int r = session_find_own(session, request, "name", &tenant, err);
	if (r < 0)
		return r;
	if (*tenant->terms.claim.key && !tenant->terms.is_retired)
		return error_set(
			err, EBUSY,
			"tenant '%s' belongs to claim '%s', and ends with that claim: delete the "
			"claim's pod or device",
			tenant->terms.name, tenant->terms.claim.key);
	bool is_ending = tenant_retire(tenant, "removed by request");
	json_object_set_new(reply, "ending", json_boolean(is_ending));
	return is_ending ? tenant_state_save(tenant, true, err) : 0;
}

int request_space(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct tenant *tenant;
	int r = session_find_own(session, request, "name", &tenant, err);
	if (r < 0)
		return r;
	json_object_set_new(reply, "starting", json_boolean(space_is_starting(tenant)));
	json_object_set_new(reply, "space", space_to_json(tenant));
	return 0;
}
