#include "daemon/tasks/violation/violations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/api/audit/audit.h"
#include "daemon/gpu/nvml/census_policy.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/join/adopt.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/violation/signs.h"
#include "daemon/tasks/violation/stopped_list.h"
#include "daemon/tasks/violation/suspects.h"
#include "daemon/tasks/watch/gpu_watch.h"

#define MIB (UINT64_C(1) << 20)
/* If a process has no sign (signs.h) of a tenant, its signs are read again only after this number of censuses. */
#define SIGNS_LOOKS 10
#define HOST_PID_NAMESPACE \
	0xEFFFFFFCU /* inode of the first pid namespace (Linux, include/linux/proc_ns.h) */

enum on_violation violations_action(const struct tenant *t)
{
	enum on_violation wanted = on_violation_stricter(t->terms.on_violation,
							 t->node->config.on_violation);
	/* Report an MPS client instead of freezing it: a stopped client would block all clients of its server. */
	return wanted == ON_VIOLATION_FREEZE && space_is_client(t) ? ON_VIOLATION_REPORT : wanted;
}

static void note_in_audit(const struct suspect *s, const struct tenant *t)
{
	struct audit *audit = t->node->audit;
	json_t *what = audit_about(audit, t);
	if (what) {
		json_object_set_new(what, "pid", json_integer(s->pid));
		json_object_set_new(what, "process", json_clean_string(s->name));
		json_object_set_new(what, "reason", json_string(violation_reason_name(s->reason)));
		json_object_set_new(what, "sign", s->how ? json_string(s->how) : json_null());
		json_object_set_new(what, "memory_bytes", json_integer((json_int_t)s->held_bytes));
	}
	audit_write(audit, "violation", what);
}

static void become_offender(struct suspect *s, struct tenant *t, enum violation_reason reason,
			    const char *how)
{
	s->is_offender = true;
	s->reason = reason;
	s->how = how;
	s->own_wanted = violations_action(t);
	snprintf(s->tenant, sizeof(s->tenant), "%s", t->terms.name);
	s->log_key = tenant_log_key(&t->terms);
	t->violations[reason]++;
	note_in_audit(s, t);
}

/* An offender may be frozen, so only a watched process may become one. After a failure, the next census tries again. */
static bool ensure_watched(struct suspect *s, const struct tenant *t)
{
	int r = suspects_watch(s);
	if (r < 0 && r != -ESRCH && !s->is_failure_logged) {
		s->is_failure_logged = true;
		log_warning_of(
			tenant_log_key(&t->terms),
			"tenant '%s': process %d (%s) breaks its tenant's limits, and can't "
			"be watched: %s; nothing is done about it until that works (logged once)",
			t->terms.name, s->pid, s->name, strerror(-r));
	}
	return r >= 0;
}

static void note_unregistered(struct suspect *s, struct tenant *t)
{
	if (!ensure_watched(s, t))
		return;
	become_offender(s, t, VIOLATION_UNREGISTERED, s->how);
	log_warning_of(tenant_log_key(&t->terms),
		       "tenant '%s' (%s): process %d (%s) holds %" PRIu64
		       " MiB of GPU memory and never registered with allotd (%s)",
		       t->terms.name, t->terms.id, s->pid, s->name, s->held_bytes / MIB, s->how);
}

void violations_note_over(struct violations *v, struct tenant *t, int pid,
			  enum violation_reason reason, unsigned card, uint64_t held_bytes,
			  uint64_t beyond_bytes)
{
	struct suspect *s = v ? suspects_get(v, pid) : NULL;
	if (!s || s->is_offender || !ensure_watched(s, t))
		return;
	s->held_bytes = held_bytes;
	become_offender(s, t, reason, NULL);
	if (reason == VIOLATION_OVER_QUOTA)
		log_warning_of(tenant_log_key(&t->terms),
			       "tenant '%s' (%s) holds %" PRIu64
			       " MiB more than its quota on GPU %u: its process %d (%s) holds most, "
			       "%" PRIu64 " MiB",
			       t->terms.name, t->terms.id, beyond_bytes / MIB, card, s->pid,
			       s->name, held_bytes / MIB);
	else
		log_warning_of(tenant_log_key(&t->terms),
			       "tenant '%s' (%s): process %d (%s) holds %" PRIu64
			       " MiB on GPU %u, %" PRIu64 " MiB more than the library counted",
			       t->terms.name, t->terms.id, s->pid, s->name, held_bytes / MIB, card,
			       beyond_bytes / MIB);
}

void violations_note_time(struct violations *v, struct tenant *t, int pid, unsigned card,
			  double measured, double charged)
{
	struct suspect *s = v && v->are_pids_ours ? suspects_get(v, pid) : NULL;
	if (!s || s->is_offender || s->is_ours || !ensure_watched(s, t))
		return;
	become_offender(s, t, VIOLATION_OVER_TIME, NULL);
	log_warning_of(
		tenant_log_key(&t->terms),
		"tenant '%s' (%s) used %.0f %% of the time of GPU %u lately, as the driver measured, "
		"but was charged for at most %.0f %% that it was allowed to use. Its process %d (%s) "
		"used most: it may bypass the library",
		t->terms.name, t->terms.id, 100 * measured, card, 100 * charged, s->pid, s->name);
	offenders_act(v);
}

static bool is_registered(struct node *node, int pid)
{
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		if (tenant_process_of(t, pid) || adopt_is_expected(t, pid))
			return true;
	return false;
}

/*
 * Returns true if the pids in the driver's list are of our pid namespace; old drivers may list pids of another one. If this
 * daemon is outside the machine's first pid namespace, the list must show some tenant's process that holds memory, unless no
 * tenant has such a process.
 */
static bool are_pids_ours(const struct violations *v, unsigned card, const struct census_card *seen)
{
	struct tenant *t;
	bool is_anyone = false;
	TAILQ_FOREACH(t, &v->node->tenants, link)
		for (unsigned d = 0; d < t->terms.device_count; d++)
			for (unsigned i = 0;
			     t->terms.device[d].card->index == card && i < t->slot_limit; i++) {
				struct process *p = t->process[i];
				if (!p || !p->census[d].used_before || tenant_is_checkpointing(t))
					continue;
				is_anyone = true;
				for (size_t k = 0; k < seen->process_count; k++)
					if (seen->process[k].pid == p->pid)
						return true;
			}
	return v->is_host || !is_anyone;
}

static bool is_adopting(const struct node *node)
{
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		if (t->adopting)
			return true;
	return false;
}

static void note_seen(struct violations *v, const struct gpu_process *seen)
{
	struct suspect *s;
	if ((seen->used_known && !seen->used_bytes) || is_registered(v->node, seen->pid))
		return;
	s = suspects_get(v, seen->pid);
	if (!s)
		return;
	s->held_bytes = (s->is_seen ? s->held_bytes : 0) + (seen->used_known ? seen->used_bytes : 0);
	s->is_seen = true;
}

static struct tenant *find_owner(struct suspect *s)
{
	struct node *node = s->violations->node;
	if (!s->owner[0] && s->censuses_left > 0) {
		s->censuses_left--;
		return NULL;
	}
	struct violation_signs signs = signs_of(node, s->pid);
	const struct tenant *owner = violation_owner(&signs, &s->how);
	snprintf(s->owner, sizeof(s->owner), "%s", owner ? owner->terms.name : "");
	s->censuses_left = SIGNS_LOOKS;
	return owner ? node_find_tenant(node, owner->terms.id) : NULL;
}

struct tenant *violations_owner_of(struct violations *v, int pid)
{
	struct suspect *s = v && v->are_pids_ours ? suspects_get(v, pid) : NULL;
	if (!s || s->is_ours)
		return NULL;
	/* If the owner is known, do not read the signs here: each census reads them again, and an offender's owner stays. */
	const char *known = s->is_offender ? s->tenant : s->owner;
	return known[0] ? node_find_tenant(v->node, known) : find_owner(s);
}

static void check_suspect(struct suspect *s, uint64_t now_ns)
{
	struct node *node = s->violations->node;
	struct tenant *owner = find_owner(s);
	if (!owner || tenant_is_checkpointing(owner) || gpu_watch_is_away(node->watch, s->pid))
		return;
	if (violation_confirm(&owner->unregistered, now_ns, node->config.census_ns))
		note_unregistered(s, owner);
}

static void forgive_registered(struct suspect *s)
{
	if (!s->is_offender || s->reason != VIOLATION_UNREGISTERED ||
	    !is_registered(s->violations->node, s->pid))
		return;
	log_info_of(s->log_key,
		    "tenant '%s': process %d (%s) uses the library now and has registered with "
		    "allotd, so it is no longer an offender",
		    s->tenant, s->pid, s->name);
	offenders_resume(s, NULL);
	s->is_offender = false;
	offenders_write_list(s->violations);
}

void violations_census(struct violations *v, const struct census_card *cards)
{
	struct node *node = v->node;
	struct suspect *s, *next;
	uint64_t now_ns = clock_now_ns();
	/* After a restart, processes that have not found this daemon yet look unregistered. */
	bool is_sound = !is_adopting(node), is_whole = true;
	TAILQ_FOREACH(s, &v->list, link)
		s->is_seen = false;
	for (unsigned i = 0; i < node->card_count; i++) {
		if (!cards[i].processes_known || !are_pids_ours(v, i, &cards[i])) {
			is_whole = false;
			continue;
		}
		for (size_t k = 0; k < cards[i].process_count; k++)
			note_seen(v, &cards[i].process[k]);
	}
	v->are_pids_ours = v->is_host || is_whole;
	for (s = TAILQ_FIRST(&v->list); s; s = next) {
		next = TAILQ_NEXT(s, link);
		forgive_registered(s);
		if (is_sound && s->is_seen && !s->is_offender && !s->is_ours)
			check_suspect(s, now_ns);
		/* An unlisted process counts as gone only if all cards were read (is_whole). */
		if (!s->source && !s->is_seen && is_whole)
			suspects_remove(s);
	}
	offenders_act(v);
}

bool violations_has_open(const struct node *node)
{
	const struct violations *v = node->violations;
	const struct suspect *s;
	const struct tenant *t;
	if (!v)
		return false;
	TAILQ_FOREACH(t, &node->tenants, link)
		if (violation_is_suspected(&t->unregistered, clock_now_ns(), node->config.census_ns))
			return true;
	TAILQ_FOREACH(s, &v->list, link)
		if (!s->is_offender && !s->is_ours)
			return true;
	return false;
}

void violations_rename_tenant(struct violations *v, const char *from, const char *to)
{
	struct suspect *s;
	TAILQ_FOREACH(s, &v->list, link) {
		if (!strcmp(s->owner, from))
			snprintf(s->owner, sizeof(s->owner), "%s", to);
		if (!strcmp(s->tenant, from))
			snprintf(s->tenant, sizeof(s->tenant), "%s", to);
	}
}

int violations_resume(struct violations *v, const char *tenant, bool is_admin, struct error *err)
{
	struct suspect *s;
	bool is_settings = v->node->config.on_violation != ON_VIOLATION_REPORT;
	int count = 0, failed = 0;
	TAILQ_FOREACH(s, &v->list, link) {
		if (!s->is_offender || strcmp(s->tenant, tenant) ||
		    !(s->container[0] || s->is_stopped))
			continue;
		if (is_settings && !is_admin)
			return error_set(
				err, EPERM,
				"process %d (%s) of tenant '%.63s' is frozen for a violation (%s): "
				"only root and members of group allot may let it go on",
				s->pid, s->name, tenant, violation_reason_name(s->reason));
		int r = offenders_resume(s, err);
		failed = r < 0 ? r : failed;
		s->is_pardoned = true;
		offenders_note(s, "resumed");
		count++;
		if (r >= 0)
			log_info_of(s->log_key, "tenant '%s': process %d (%s) goes on by request",
				    s->tenant, s->pid, s->name);
	}
	if (count)
		offenders_write_list(v);
	return failed < 0 ? failed : count;
}

json_t *violations_of_tenant(const struct violations *v, const char *tenant)
{
	json_t *list = json_array();
	const struct suspect *s;
	TAILQ_FOREACH(s, &v->list, link)
		if (s->is_offender && !strcmp(s->tenant, tenant))
			json_array_append_new(list,
					      json_pack("{s:i, s:s, s:s, s:o, s:s, s:I}", "pid",
							s->pid, "name", s->name, "reason",
							violation_reason_name(s->reason), "sign",
							s->how ? json_string(s->how) : json_null(),
							"action", offenders_action(s),
							"memory_bytes", (json_int_t)s->held_bytes));
	return list;
}

json_t *violations_of_process(const struct violations *v, int pid)
{
	const struct suspect *s = v ? suspects_find(v, pid) : NULL;
	if (!s || !s->is_offender)
		return json_null();
	return json_pack("{s:s, s:s, s:s}", "tenant", s->tenant, "reason",
			 violation_reason_name(s->reason), "action", offenders_action(s));
}

struct violations_figures violations_figures(const struct violations *v)
{
	return v->figures;
}

static void timer_due(void *data, uint32_t events)
{
	offenders_act(data);
}

static bool is_host_namespace(void)
{
	struct stat st;
	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == HOST_PID_NAMESPACE;
}

int violations_start(struct node *node, struct violations **ret, struct error *err)
{
	struct violations *v = calloc(1, sizeof(*v));
	if (!v)
		return error_set_errno(err, ENOMEM, "violations");
	v->node = node;
	v->is_host = is_host_namespace();
	v->are_pids_ours = v->is_host;
	TAILQ_INIT(&v->list);
	int r = loop_add_timer(node->loop, timer_due, v, &v->timer);
	if (r < 0) {
		free(v);
		return error_set_errno(err, -r, "violations' timer");
	}
	unsigned left = stopped_list_continue(node->run_dir);
	if (left)
		log_warning("allotd continued %u processes that the previous daemon had stopped",
			    left);
	*ret = v;
	return 0;
}

struct violations *violations_stop(struct violations *v)
{
	struct suspect *s;
	if (!v)
		return NULL;
	while ((s = TAILQ_FIRST(&v->list))) {
		offenders_resume(s, NULL);
		suspects_remove(s);
	}
	offenders_write_list(v);
	loop_remove(v->timer);
	free(v);
	return NULL;
}
