/*
 * Takes processes off their GPUs and brings them back, at the request of another process.
 *
 *     RUNNING -- lock ----> LOCKED -- checkpoint --> CHECKPOINTED
 *             <- unlock ---        <-- restore -----
 *
 * A lock shuts the process's gate (struct sim_gate), so that the program's calls wait. The lock is complete when the process's
 * work is done. A checkpoint releases what the process holds on all GPUs, contexts too, and removes the process from NVML's
 * list. The memory's contents stay in the process. A restore without room for everything fails and changes nothing.
 */
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/server/server.h"

#define NS_PER_MS 1000000ull

static void set_gate(struct client *c, bool shut)
{
	if (!c->gate)
		return;
	c->gate->is_shut = shut;
	if (!shut)
		syscall(SYS_futex, &c->gate->is_shut, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static struct client *find(const struct server *s, uint64_t pid)
{
	for (struct client *c = s->clients; c; c = c->next)
		if (c->kind == SIM_KIND_CUDA && !c->gone && (uint64_t)c->pid == pid)
			return c;
	return NULL;
}

static void answer(struct server *s, struct client *target, int status)
{
	struct client *requester = target->requester;

	target->requester = NULL;
	server_reply(s, requester, target->requester_req, status, NULL, NULL, 0);
}

bool checkpoint_blocks(const struct client *c, uint32_t type)
{
	return c->process == SIM_PROCESS_CHECKPOINTED && !sim_passes_gate(type);
}

static void finish_request(struct server *s, struct client *target)
{
	if (target->asked_to_lock) {
		target->process = SIM_PROCESS_LOCKED;
		answer(s, target, SIM_OK);
	} else if (blocks_park(s, target)) {
		target->process = SIM_PROCESS_CHECKPOINTED;
		answer(s, target, SIM_OK);
	} else {
		answer(s, target, SIM_NOT_SUPPORTED);
	}
}

void checkpoint_poll(struct server *s, uint64_t now_ns)
{
	for (struct client *c = s->clients; c; c = c->next) {
		if (!c->requester || c->gone)
			continue;
		if (work_is_done(c)) {
			finish_request(s, c);
		} else if (c->asked_to_lock && now_ns >= c->lock_until_ns) {
			set_gate(c, false);
			answer(s, c, SIM_NOT_READY);
		}
	}
}

uint64_t checkpoint_next_due(const struct server *s)
{
	uint64_t due = ENGINE_NEVER, t;

	for (const struct client *c = s->clients; c; c = c->next) {
		if (!c->requester)
			continue;
		t = work_next_end(s, c);
		due = t < due ? t : due;
		if (c->asked_to_lock)
			due = c->lock_until_ns < due ? c->lock_until_ns : due;
	}
	return due;
}

void checkpoint_client_gone(struct server *s, struct client *c)
{
	for (struct client *o = s->clients; o; o = o->next)
		if (o->requester == c) {
			o->requester = NULL;
			if (o->asked_to_lock)
				set_gate(o, false);
		}
	if (c->requester)
		answer(s, c, SIM_INVALID);
	if (c->gate)
		munmap(c->gate, sizeof(*c->gate));
}

/* Returns SIM_OK if c may make this request about the target in its present state, else the driver's error. */
static int check(const struct client *c, const struct client *target, uint32_t type)
{
	static const enum sim_process before[] = {
		[SIM_PROCESS_LOCK - SIM_PROCESS_STATE] = SIM_PROCESS_RUNNING,
		[SIM_PROCESS_CHECKPOINT - SIM_PROCESS_STATE] = SIM_PROCESS_LOCKED,
		[SIM_PROCESS_RESTORE - SIM_PROCESS_STATE] = SIM_PROCESS_CHECKPOINTED,
		[SIM_PROCESS_UNLOCK - SIM_PROCESS_STATE] = SIM_PROCESS_LOCKED,
	};

	if (!target)
		return SIM_NOT_INITIALIZED;
	if (c->uid != 0 && c->uid != target->uid)
		return SIM_NOT_PERMITTED;
	if (type != SIM_PROCESS_STATE &&
	    (target->requester || target->process != before[type - SIM_PROCESS_STATE]))
		return SIM_ILLEGAL_STATE;
	return SIM_OK;
}

bool checkpoint_handle(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	if (m->type < SIM_PROCESS_STATE || m->type > SIM_PROCESS_UNLOCK)
		return false;
	struct client *target = find(s, m->arg[0]);
	int status = check(c, target, m->type);
	if (status != SIM_OK) {
		server_reply(s, c, m->req, status, NULL, NULL, 0);
		return true;
	}
	switch (m->type) {
	case SIM_PROCESS_STATE:
		server_reply(s, c, m->req, SIM_OK, (uint64_t[5]){ target->process }, NULL, 0);
		return true;
	case SIM_PROCESS_RESTORE:
		status = blocks_unpark(s, target) ? SIM_OK : SIM_OOM;
		if (status == SIM_OK)
			target->process = SIM_PROCESS_LOCKED;
		server_reply(s, c, m->req, status, NULL, NULL, 0);
		return true;
	case SIM_PROCESS_UNLOCK:
		target->process = SIM_PROCESS_RUNNING;
		set_gate(target, false);
		server_reply(s, c, m->req, SIM_OK, NULL, NULL, 0);
		return true;
	default: break;
	}
	/* Lock and checkpoint wait for the target's work; checkpoint_poll() completes them. */
	target->requester = c;
	target->requester_req = m->req;
	target->asked_to_lock = m->type == SIM_PROCESS_LOCK;
	target->lock_until_ns = m->arg[1] ? s->engine.now_ns + m->arg[1] * NS_PER_MS : ENGINE_NEVER;
	set_gate(target, true);
	return true;
}
