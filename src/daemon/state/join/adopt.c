#include "daemon/state/join/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/memory/memory_waiters.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/tenant.h"
#include "daemon/state/tenant_state.h"
#include "daemon/state/use.h"
#include "daemon/util/procfs.h"

#define LOOK_NS (2 * NSEC_PER_MSEC)
#define RETRY_NS (100 * NSEC_PER_MSEC) /* between two tries to watch a process */

static void publish_unslotted(struct tenant *tenant)
{
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		uint64_t sum = 0;
		for (const struct old_process *o = tenant->old; o; o = o->next)
			sum += o->used_bytes[i];
		atomic_store_explicit(&tenant->region.control->device[i].unslotted_bytes, sum,
				      memory_order_seq_cst);
	}
}

static void forget(struct old_process *old)
{
	struct tenant *tenant = old->tenant;
	struct old_process **link = &tenant->old;
	while (*link != old)
		link = &(*link)->next;
	*link = old->next;
	loop_remove(old->source);
	close_fd(&old->pidfd);
	free(old);
	publish_unslotted(tenant);
}

/* The tenant's command (tenant.command_pid) has ended, so it cannot reconnect to keep the tenant alive. */
static void command_ended(void *data, uint32_t events)
{
	struct tenant *tenant = data;
	adopt_forget_command(tenant);
	tenant->grace = false;
	tenant_end_if_unused(tenant);
}

void adopt_forget_command(struct tenant *tenant)
{
	if (!tenant->command_source)
		return;
	loop_remove(tenant->command_source);
	tenant->command_source = NULL;
	close_fd(&tenant->command_pidfd);
}

void adopt_forget_all(struct tenant *tenant)
{
	adopt_forget_command(tenant);
	while (tenant->old) {
		struct old_process *old = tenant->old;
		tenant->old = old->next;
		loop_remove(old->source);
		close_fd(&old->pidfd);
		free(old);
	}
}

static void remove_ended(struct old_process *old)
{
	struct tenant *tenant = old->tenant;
	/*
	 * The memory of an ended process drains (counts as taken until the driver frees it). If the process was registered,
	 * draining begins when its slot is freed; else here.
	 */
	for (unsigned i = 0; !old->registered && i < tenant->terms.device_count; i++)
		drain_add(tenant->node, tenant->terms.device[i].card, old->pid, old->used_bytes[i],
			  false);
	forget(old);
	tenant_save_soon(tenant);
	node_grant_soon(tenant->node);
}

static void old_process_died(void *data, uint32_t events)
{
	struct old_process *old = data;
	struct tenant *tenant = old->tenant;
	remove_ended(old);
	tenant_end_if_unused(tenant);
}

/* Watches a process of the state file. Returns -ESRCH if it has ended. After another -errno it may live, but is unwatched. */
static int watch(struct tenant *tenant, struct old_process *old)
{
	old->pidfd = -1;
	int r = procfs_open_process(old->pid, old->start_time, &old->pidfd);
	if (r >= 0)
		r = loop_add(tenant->node->loop, old->pidfd, EPOLLIN, old_process_died, old,
			     &old->source);
	if (r < 0)
		close_fd(&old->pidfd);
	return r;
}

/* Returns false only if the tenant's command has ended, so that it cannot reconnect to keep the tenant alive. */
static bool watch_command(struct tenant *tenant, const struct tenant_state *state)
{
	int r = state->command_pid ? procfs_open_process(state->command_pid, state->command_start,
							 &tenant->command_pidfd)
				   : -ENOENT;
	if (r < 0)
		return r != -ESRCH;
	tenant->command_pid = state->command_pid;
	tenant->command_start = state->command_start;
	if (loop_add(tenant->node->loop, tenant->command_pidfd, EPOLLIN, command_ended, tenant,
		     &tenant->command_source) < 0)
		close_fd(&tenant->command_pidfd);
	return true;
}

/* Gives the tenant those processes of `state` that may still live. */
static void take_processes(struct tenant *tenant, struct tenant_state *state)
{
	while (state->old) {
		struct old_process *old = state->old;
		state->old = old->next;
		int r = watch(tenant, old);
		if (r == -ESRCH) {
			free(old);
			continue;
		}
		if (r < 0)
			log_warning("tenant '%s': process %d can't be watched: %s; trying again",
				    tenant->terms.name, old->pid, strerror(-r));
		old->tenant = tenant;
		old->next = tenant->old;
		tenant->old = old;
	}
}

static int adopt(struct node *node, enum tenant_place place, const char *id, struct error *err)
{
	char path[NODE_PATH_MAX];
	cleanup(tenant_state_free) struct tenant_state state = { 0 };
	struct tenant *tenant;
	tenant_dir_path(node, place, id, "tenant.json", path);
	int r = tenant_state_load(node, path, id, &state, err);
	if (r < 0)
		return r;
	if (tenant_place(&state.terms) != place)
		return error_set(
			err, EINVAL,
			"%s: this file is in the wrong directory: it must be below claims/ if it "
			"has the field 'claim', otherwise below tenants/",
			path);
	if (node_find_tenant(node, state.terms.name))
		return error_set(err, EEXIST, "%s: another tenant has this tenant's name", path);
	r = tenant_adopt(node, &state.terms, &tenant, err);
	if (r < 0)
		return r;
	uint64_t now_ns = clock_now_ns();
	take_processes(tenant, &state);
	publish_unslotted(tenant);
	/* Publish the quotas only now: the quota of a retired (removed) tenant is what it holds, unknown before. */
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		tenant_publish_quota(tenant, i);
	tenant->command_cgroup = steal_pointer(&state.command_cgroup);
	memory_wait_restore(tenant, &state.past);
	/* use.json (use_state.h) is newer than the state file, so state.use_ns counts only if use.json lacks the tenant. */
	if (!tenant->use.at_ns)
		use_restore(tenant, state.use_ns);
	tenant->started = tenant->old != NULL;
	tenant->grace = watch_command(tenant, &state);
	tenant->grace_end_ns = now_ns + node->config.adopt_grace_ns;
	tenant->adopting_end_ns = now_ns + node->config.adopt_wait_ns;
	tenant->adopting = tenant->old != NULL;
	atomic_store(&tenant->region.control->adopting, tenant->adopting);
	tenant_save_soon(tenant);
	return 0;
}

static bool is_id(const char *name)
{
	return strlen(name) == TENANT_ID_MAX - 1 &&
	       strspn(name, "0123456789abcdef") == TENANT_ID_MAX - 1;
}

static unsigned adopt_place(struct node *node, enum tenant_place place)
{
	char path[NODE_PATH_MAX];
	unsigned count = 0;
	tenant_dir_path(node, place, NULL, NULL, path);
	cleanup_dir DIR *dir = opendir(path);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		struct error err = { 0 };
		if (!is_id(entry->d_name))
			continue;
		int r = adopt(node, place, entry->d_name, &err);
		if (r == -ENOENT)
			/* there is no state file: the tenant's creation was not finished */
			tenant_delete_files(node, place, entry->d_name);
		else if (r < 0)
			log_error("tenant %s can't be restored: %s; end its processes, then remove "
				  "%s/%s",
				  entry->d_name, err.text, path, entry->d_name);
		else
			count++;
	}
	return count;
}

unsigned adopt_all(struct node *node)
{
	unsigned count = adopt_place(node, TENANT_PLACE_OWN) + adopt_place(node, TENANT_PLACE_CLAIM);
	if (count)
		loop_arm(node->adopt_timer, LOOK_NS, 0);
	return count;
}

void adopt_end_unused(struct node *node)
{
	for (struct tenant *t = TAILQ_FIRST(&node->tenants), *next; t; t = next) {
		next = TAILQ_NEXT(t, link);
		tenant_end_if_unused(t);
	}
}

void adopt_registered(struct tenant *tenant, int pid, unsigned slot, bool from_before)
{
	for (struct old_process *o = tenant->old, *next; o; o = next) {
		next = o->next;
		if (o->pid != pid || o->registered)
			continue;
		if (!from_before) {
			forget(o);
			continue;
		}
		o->registered = true;
		o->slot = slot;
		break;
	}
	loop_arm(tenant->node->adopt_timer, LOOK_NS, 0);
}

bool adopt_is_expected(const struct tenant *tenant, int pid)
{
	for (const struct old_process *o = tenant->old; o; o = o->next)
		if (o->pid == pid && !o->registered)
			return true;
	return false;
}

void adopt_slot_gone(struct tenant *tenant, int pid, unsigned slot)
{
	for (struct old_process *o = tenant->old; o; o = o->next)
		if (o->registered && o->slot == slot)
			o->registered = false;
}

/* Ends the adoption if all usage was copied, or if adopting_end_ns has passed. Returns true while polling is needed. */
static bool poll_adoption(struct tenant *tenant, uint64_t now_ns)
{
	bool copying = false;
	for (struct old_process *o = tenant->old, *next; o; o = next) {
		next = o->next;
		if (!o->registered)
			continue;
		/* Until `migrated` is set, the usage counts twice, so that the tenant cannot exceed its quota meanwhile. */
		if (atomic_load(&tenant->region.report->slot[o->slot].migrated))
			forget(o);
		else
			copying = true;
	}
	if (tenant->adopting && (!tenant->old || now_ns >= tenant->adopting_end_ns)) {
		tenant->adopting = false;
		atomic_store(&tenant->region.control->adopting, 0);
		log_info("tenant '%s' (%s): adopted from the previous daemon, with %u processes%s",
			 tenant->terms.name, tenant->terms.id, tenant->process_count,
			 tenant->old ? "; others have yet to reconnect" : "");
		node_grant_soon(tenant->node);
		tenant_checkpoint_adopted(tenant);
	}
	return copying || tenant->adopting;
}

/* Tries again to watch the unwatched processes. Returns true if some are still unwatched. May end the tenant. */
static bool retry_watches(struct tenant *tenant)
{
	bool has_unwatched = false, has_ended = false;
	for (struct old_process *o = tenant->old, *next; o; o = next) {
		next = o->next;
		int r = o->source ? 0 : watch(tenant, o);
		has_unwatched |= r < 0 && r != -ESRCH;
		has_ended |= r == -ESRCH;
		if (r == -ESRCH)
			remove_ended(o);
	}
	if (has_ended)
		tenant_end_if_unused(tenant);
	return has_unwatched;
}

void adopt_timer_due(void *data, uint32_t events)
{
	struct node *node = data;
	uint64_t now_ns = clock_now_ns();
	bool is_copying = false, has_unwatched = false;
	for (struct tenant *t = TAILQ_FIRST(&node->tenants), *next; t; t = next) {
		next = TAILQ_NEXT(t, link);
		is_copying |= poll_adoption(t, now_ns);
		has_unwatched |= retry_watches(t);
	}
	if (is_copying || has_unwatched)
		loop_arm(node->adopt_timer, is_copying ? LOOK_NS : RETRY_NS, 0);
}
