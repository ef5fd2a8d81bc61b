/* Acts on offenders (processes that bypass the library), in the steps of violation_policy.h, and undoes these actions. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/api/audit/audit.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/commands/command_cgroups.h"
#include "daemon/tasks/violation/signs.h"
#include "daemon/tasks/violation/stopped_list.h"
#include "daemon/tasks/violation/suspects.h"
#include "daemon/tasks/violation/violations.h"
#include "daemon/tasks/watch/gpu_watch.h"
#include "daemon/util/procfs.h"

#define END_LOOK_NS (500 * NSEC_PER_MSEC)
/* A tenant's command that has had so many offenders is ended whole, because it may start ever new ones. */
#define OFFENDERS_MOST 3

static int send_signal(const struct suspect *s, int signal)
{
	return syscall(SYS_pidfd_send_signal, s->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

static void log_failure(struct suspect *s, const char *what, int error)
{
	s->violations->figures.failed++;
	if (error == ESRCH)
		return;
	if (!s->violations->is_failure_logged)
		log_warning_of(s->log_key,
			       "tenant '%s': process %d (%s) breaks its tenant's limits, and "
			       "can't be %s: %s (logged once)",
			       s->tenant, s->pid, s->name, what, strerror(error));
	s->violations->is_failure_logged = true;
}

void offenders_write_list(struct violations *v)
{
	cleanup_free struct stopped_process *list = calloc(v->count + 1, sizeof(*list));
	const struct suspect *s;
	size_t count = 0;
	TAILQ_FOREACH(s, &v->list, link)
		if (list && s->is_stopped)
			list[count++] = (struct stopped_process){ s->pid, s->start_time };
	int r = list ? stopped_list_write(v->node->run_dir, list, count) : -ENOMEM;
	if (r < 0)
		log_warning("%s/stopped can't be written: %s; a restarted allotd may not continue "
			    "the processes that it stopped",
			    v->node->run_dir, strerror(-r));
}

static const struct tenant *tenant_of(const struct suspect *s)
{
	return node_find_tenant(s->violations->node, s->tenant);
}

void offenders_note(const struct suspect *s, const char *action)
{
	struct audit *audit = s->violations->node->audit;
	const struct tenant *t = tenant_of(s);
	if (!audit)
		return;
	json_t *what = t ? audit_about(audit, t) : json_pack("{s:s}", "tenant", s->tenant);
	if (what) {
		json_object_set_new(what, "action", json_string(action));
		json_object_set_new(what, "pid", json_integer(s->pid));
		json_object_set_new(what, "process", json_clean_string(s->name));
	}
	audit_write(audit, "violation_action", what);
}

static void freeze(struct suspect *s)
{
	struct error err = { 0 };
	int r = gpu_watch_hold(s->violations->node->watch, s->pid, s->container, &err);
	if (r < 0) {
		/* The container cannot be frozen, so the next decision stops the process itself. */
		s->no_container = true;
		log_debug("violation: process %d can't be frozen with its container: %s", s->pid,
			  err.text);
		return;
	}
	s->violations->figures.frozen++;
	offenders_note(s, "frozen");
	log_warning_of(s->log_key,
		       "tenant '%s': container %.*s is frozen because of process %d (%s); allot "
		       "resume lets it go on",
		       s->tenant, CONTAINER_SHORT_ID, s->container, s->pid, s->name);
}

static void stop(struct suspect *s)
{
	bool again = s->is_stopped;
	/* Save the list first: after a kill in between, the next daemon only continues a process that was not stopped. */
	s->is_stopped = true;
	if (!again)
		offenders_write_list(s->violations);
	int r = send_signal(s, SIGSTOP);
	if (r < 0) {
		s->is_stopped = false;
		offenders_write_list(s->violations);
		log_failure(s, "stopped", -r);
		return;
	}
	s->violations->figures.stopped += !again;
	if (!again)
		offenders_note(s, "stopped");
	if (again)
		log_info_of(s->log_key,
			    "tenant '%s': process %d (%s) had been continued, and is stopped again",
			    s->tenant, s->pid, s->name);
	else
		log_warning_of(s->log_key,
			       "tenant '%s': process %d (%s) is stopped; allot resume lets it go on",
			       s->tenant, s->pid, s->name);
}

static void terminate_command(const struct suspect *s)
{
	struct tenant *t = node_find_tenant(s->violations->node, s->tenant);
	if (!t || ++t->command_offenders < OFFENDERS_MOST || t->command_end_ns ||
	    command_cgroups_signal(t, SIGTERM) < 0)
		return;
	t->command_end_ns = clock_now_ns() + VIOLATION_END_NS;
	log_warning_of(s->log_key,
		       "tenant '%s': all processes of its command are sent SIGTERM, because %u of them "
		       "broke its limits",
		       s->tenant, t->command_offenders);
}

static void kill_command(struct tenant *t)
{
	t->command_end_ns = 0;
	command_cgroups_signal(t, SIGKILL);
	log_warning_of(tenant_log_key(&t->terms),
		       "tenant '%s': the processes of its command that did not end after SIGTERM are "
		       "killed",
		       t->terms.name);
}

static void terminate(struct suspect *s)
{
	int r = send_signal(s, SIGTERM);
	s->is_terminated = true;
	s->terminated_ns = clock_now_ns();
	loop_arm(s->violations->timer, END_LOOK_NS, END_LOOK_NS);
	if (r < 0) {
		log_failure(s, "ended", -r);
		return;
	}
	s->violations->figures.told_to_end++;
	offenders_note(s, "told_to_end");
	log_warning_of(s->log_key,
		       "tenant '%s': process %d (%s) is sent SIGTERM for a violation (%s)",
		       s->tenant, s->pid, s->name, violation_reason_name(s->reason));
	terminate_command(s);
}

static void end(struct suspect *s)
{
	if (s->is_killed)
		return;
	s->is_killed = true;
	int r = send_signal(s, SIGKILL);
	if (r < 0) {
		log_failure(s, "killed", -r);
		return;
	}
	s->violations->figures.killed++;
	offenders_note(s, "killed");
	log_warning_of(s->log_key,
		       "tenant '%s': process %d (%s) did not end after SIGTERM, and is killed",
		       s->tenant, s->pid, s->name);
}

static bool has_own_container(struct suspect *s)
{
	struct node *node = s->violations->node;
	return !s->no_container && node->watch &&
	       signs_has_own_container(node, tenant_of(s), s->pid);
}

static struct violation_case case_of(struct suspect *s)
{
	const struct tenant *t = tenant_of(s);
	if (t)
		s->own_wanted = violations_action(t);
	struct violation_case c = {
		.wanted = on_violation_stricter(s->own_wanted,
						s->violations->node->config.on_violation),
		.is_pardoned = s->is_pardoned,
		.is_frozen = s->container[0],
		.is_stopped = s->is_stopped && procfs_is_stopped(s->pid),
		.is_terminated = s->is_terminated,
		.terminated_ns = s->terminated_ns,
	};
	if (c.wanted == ON_VIOLATION_REPORT || c.is_pardoned)
		return c;
	c.is_untouchable = signs_is_untouchable(s->pid);
	c.has_own_container = c.wanted == ON_VIOLATION_FREEZE && !c.is_frozen && !c.is_stopped &&
			      has_own_container(s);
	return c;
}

static void act(struct suspect *s)
{
	struct violation_case c;
	/* If a user has thawed the container, or the freezer did so because its watchdog died, let the process run on. */
	if (s->container[0] && !gpu_watch_is_held(s->violations->node->watch, s->container)) {
		s->container[0] = '\0';
		s->is_pardoned = true;
	}
	for (unsigned i = 0; i < 2; i++) {
		c = case_of(s);
		switch (violation_next(&c, clock_now_ns())) {
		case VIOLATION_LEAVE: return;
		/* if freezing failed, the second round decides anew */
		case VIOLATION_FREEZE: freeze(s); break;
		case VIOLATION_STOP: stop(s); return;
		case VIOLATION_TERM: terminate(s); return;
		case VIOLATION_KILL: end(s); return;
		}
	}
}

void offenders_act(struct violations *v)
{
	struct suspect *s;
	struct tenant *t;
	bool ending = false;
	TAILQ_FOREACH(t, &v->node->tenants, link) {
		if (t->command_end_ns && clock_now_ns() >= t->command_end_ns)
			kill_command(t);
		ending |= t->command_end_ns != 0;
	}
	TAILQ_FOREACH(s, &v->list, link) {
		if (s->is_offender)
			act(s);
		ending |= s->is_terminated && !s->is_killed;
	}
	if (!ending)
		loop_disarm(v->timer);
}

static bool is_held_for_other(const struct suspect *s)
{
	const struct suspect *other;
	TAILQ_FOREACH(other, &s->violations->list, link)
		if (other != s && !strcmp(other->container, s->container))
			return true;
	return false;
}

int offenders_resume(struct suspect *s, struct error *err)
{
	int r = 0;
	if (s->container[0] && !is_held_for_other(s))
		r = gpu_watch_release(s->violations->node->watch, s->container, err);
	s->container[0] = '\0';
	if (s->is_stopped)
		send_signal(s, SIGCONT);
	s->is_stopped = false;
	return r;
}

const char *offenders_action(const struct suspect *s)
{
	if (s->is_pardoned)
		return "resumed";
	if (s->is_terminated)
		return "ending";
	if (s->container[0])
		return "frozen";
	return s->is_stopped ? "stopped" : "reported";
}
