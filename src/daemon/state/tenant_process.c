/* Gives processes slots, notices their end, and limits the values that processes write to slots. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/node/subsystem.h"
#include "daemon/state/fd_exchange_store.h"
#include "daemon/state/tenant.h"

/* Upper bound of a sum of waiting times, about a hundred days: no process waits that long, so a larger value is false. */
#define WAITED_MAX_NS (UINT64_C(1) << 53)
/* most walks over the slots in one tenant_usage(), since slots may never stop changing; a walk takes microseconds */
#define USAGE_WALKS_MAX 100
#define MIX_PRIME UINT64_C(0x100000001b3) /* FNV-1 prime */

#define load(field) atomic_load_explicit(&(field), memory_order_relaxed)

static void tenant_mark_corrupt(struct tenant *tenant, const char *what)
{
	if (tenant->corrupt)
		return;
	tenant->corrupt = true;
	log_error_of(tenant_log_key(&tenant->terms),
		     "tenant '%s' (%s): its report in shared memory is corrupt (%s): no more "
		     "processes may join it; end it and start it again",
		     tenant->terms.name, tenant->terms.id, what);
}

uint64_t process_used_bytes(struct process *process, unsigned device)
{
	struct tenant *tenant = process->tenant;
	uint64_t most = tenant->terms.device[device].card->info.memory_bytes;
	uint64_t used = load(tenant->region.report->slot[process->slot].device[device].used_bytes);
	if (used > most) {
		tenant_mark_corrupt(tenant, "a process reports more memory than the GPU has");
		return most;
	}
	return used;
}

static uint64_t add_bounded(uint64_t sum, uint64_t value, uint64_t most)
{
	if (value > most)
		value = most;
	return sum + value < most ? sum + value : most;
}

uint64_t process_unnamed_bytes(struct process *process, unsigned device)
{
	struct tenant *tenant = process->tenant;
	uint64_t most = tenant->terms.device[device].card->info.memory_bytes;
	uint64_t fresh = load(tenant->region.report->slot[process->slot].device[device].fresh_bytes);
	return add_bounded(process->census[device].unnamed, fresh, most);
}

uint64_t process_swapped_bytes(struct process *process, unsigned device)
{
	const struct tenant *tenant = process->tenant;
	if (tenant_is_off_card(tenant))
		return process_held_bytes(process, device);
	uint64_t out = load(tenant->region.report->slot[process->slot].swap[device].out_bytes);
	uint64_t used = process_used_bytes(process, device);
	if (tenant->terms.on_full != ON_FULL_SWAP)
		return 0;
	return out < used ? out : used;
}

bool process_is_moving(const struct process *process)
{
	const struct tenant *tenant = process->tenant;
	uint32_t state = load(tenant->region.report->slot[process->slot].swap_state);
	return tenant->terms.on_full == ON_FULL_SWAP &&
	       (state == SWAP_LEAVING || state == SWAP_RETURNING);
}

uint64_t process_held_bytes(struct process *process, unsigned device)
{
	return process_used_bytes(process, device) + process_unnamed_bytes(process, device);
}

static void add_totals(struct tenant_usage *usage, const struct region_slot_device *d)
{
	usage->denied = add_bounded(usage->denied, load(d->denied), INT64_MAX);
	usage->waited_ns = add_bounded(usage->waited_ns, load(d->waited_ns), WAITED_MAX_NS);
}

/* Sums the slots. *ret_mix is a hash of the processes' memory, which shows a change even if the sum stays the same. */
static struct tenant_usage walk_slots(struct tenant *tenant, unsigned device, uint64_t *ret_mix)
{
	struct tenant_usage usage = { .denied = tenant->device[device].denied,
				      .waited_ns = tenant->device[device].waited_ns };
	*ret_mix = 0;
	for (unsigned i = 0; i < tenant->slot_limit; i++) {
		if (!tenant->process[i])
			continue;
		uint64_t held = process_held_bytes(tenant->process[i], device);
		*ret_mix = (*ret_mix + held) * MIX_PRIME;
		usage.used_bytes += held;
		usage.unnamed_bytes += process_unnamed_bytes(tenant->process[i], device);
		add_totals(&usage, &tenant->region.report->slot[i].device[device]);
	}
	usage.used_bytes += load(tenant->region.control->device[device].unslotted_bytes);
	return usage;
}

/*
 * If one process frees memory after its slot was read, and another allocates it before its own slot is read, the bytes count
 * twice and seem to exceed the quota. So walk until two walks agree.
 */
struct tenant_usage tenant_usage(struct tenant *tenant, unsigned device)
{
	uint64_t mix, before;
	struct tenant_usage usage = walk_slots(tenant, device, &mix);
	unsigned walks = 1;
	do {
		before = mix;
		usage = walk_slots(tenant, device, &mix);
	} while (mix != before && ++walks < USAGE_WALKS_MAX);
	return usage;
}

uint64_t tenant_used_bytes(struct tenant *tenant)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		sum += tenant_usage(tenant, i).used_bytes;
	return sum;
}

uint64_t tenant_taken_bytes(struct tenant *tenant, unsigned device)
{
	uint64_t granted = tenant->memory_wait.granted_bytes[device];
	uint64_t used = tenant_usage(tenant, device).used_bytes;
	return used > granted ? used : granted;
}

uint64_t tenant_counted_bytes(struct tenant *tenant, unsigned device)
{
	const struct promise *p = &tenant->terms.device[device].promise;
	if (tenant->terms.on_full == ON_FULL_WAIT)
		return tenant_taken_bytes(tenant, device);
	return p->memory_given ? p->quota_bytes : tenant_usage(tenant, device).used_bytes;
}

static void process_died(void *data, uint32_t events)
{
	struct process *process = data;
	struct tenant *tenant = process->tenant;
	log_debug("tenant '%s': process %d ended", tenant->terms.name, process->pid);
	tenant_remove_process(process);
	tenant_end_if_unused(tenant);
}

static int lowest_free_slot(const struct tenant *tenant)
{
	for (unsigned i = 0; i < REGION_MAX_SLOTS; i++)
		if (!tenant->process[i])
			return (int)i;
	return -ENOSPC;
}

static int join_leases(struct tenant *tenant, unsigned slot, int pid)
{
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		int r = lessee_add_process(tenant->device[i].lessee, slot, pid);
		if (r < 0) {
			while (i-- > 0)
				lessee_remove_process(tenant->device[i].lessee, slot);
			return r;
		}
	}
	return 0;
}

int tenant_add_process(struct tenant *tenant, int pid, uint64_t start_time, int *pidfd,
		       struct process **ret, struct error *err)
{
	int slot = lowest_free_slot(tenant);
	if (slot < 0)
		return error_set(
			err, ENOSPC,
			"the tenant has %d processes already, the most allowed: end one, or start "
			"another tenant",
			REGION_MAX_SLOTS);
	cleanup_free struct process *process = calloc(1, sizeof(*process));
	if (!process)
		return error_set_errno(err, ENOMEM, "process %d", pid);
	*process = (struct process){ .tenant = tenant,
				     .slot = (unsigned)slot,
				     .pid = pid,
				     .start_time = start_time,
				     .pidfd = *pidfd };
	int r = loop_add(tenant->node->loop, *pidfd, EPOLLIN, process_died, process,
			 &process->source);
	if (r < 0)
		return error_set_errno(err, -r, "watch process %d", pid);
	region_host_assign_slot(&tenant->region, process->slot, pid);
	r = join_leases(tenant, process->slot, pid);
	if (r < 0) {
		loop_remove(process->source);
		region_host_clear_slot(&tenant->region, process->slot);
		return error_set_errno(err, -r, "process %d", pid);
	}
	*pidfd = -1;
	if (process->slot >= tenant->slot_limit)
		tenant->slot_limit = process->slot + 1;
	tenant->process[slot] = process;
	tenant->process_count++;
	NOTIFY(tenant->node, processes_changed, tenant->node);
	tenant->started = true;
	tenant_save_soon(tenant);
	*ret = steal_pointer(&process);
	return 0;
}

uint64_t tenant_host_bytes(const struct tenant *tenant)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < tenant->slot_limit; i++) {
		if (!tenant->process[i])
			continue;
		uint64_t used = atomic_load_explicit(
			&tenant->region.report->slot[i].device[REGION_HOST].used_bytes,
			memory_order_relaxed);
		/* The tenant can write any value, so each is bounded: then the sum fits a JSON integer. */
		sum += used < INT64_MAX / REGION_MAX_SLOTS ? used : INT64_MAX / REGION_MAX_SLOTS;
	}
	return sum;
}

void tenant_forget_process(struct process *process)
{
	struct tenant *tenant = process->tenant;
	tenant->process[process->slot] = NULL;
	tenant->process_count--;
	loop_remove(process->source);
	close(process->pidfd);
	free(process->cgroup);
	free(process);
}

void tenant_remove_process(struct process *process)
{
	struct tenant *tenant = process->tenant;
	const struct region_slot *slot = &tenant->region.report->slot[process->slot];
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		struct tenant_usage kept = { .denied = tenant->device[i].denied,
					     .waited_ns = tenant->device[i].waited_ns };
		add_totals(&kept, &slot->device[i]);
		tenant->device[i].denied = kept.denied;
		tenant->device[i].waited_ns = kept.waited_ns;
		lessee_remove_process(tenant->device[i].lessee, process->slot);
		/* Both are read from the tenant's memory, which its processes may change in between. */
		uint64_t held = process_held_bytes(process, i);
		uint64_t swapped = process_swapped_bytes(process, i);
		drain_add(tenant->node, tenant->terms.device[i].card, process->pid,
			  held > swapped ? held - swapped : 0, process->census[i].nvml_before > 0);
	}
	if (tenant->fd_store)
		fd_store_delete(tenant->fd_store, process->pid, 0);
	int pid = process->pid;
	unsigned slot_number = process->slot;
	region_host_clear_slot(&tenant->region, slot_number);
	tenant_forget_process(process);
	NOTIFY(tenant->node, process_gone, tenant, pid, slot_number);
	NOTIFY(tenant->node, processes_changed, tenant->node);
	tenant_save_soon(tenant);
	node_grant_soon(tenant->node);
}

struct process *tenant_process_of(const struct tenant *tenant, int pid)
{
	for (unsigned i = 0; i < tenant->slot_limit; i++)
		if (tenant->process[i] && tenant->process[i]->pid == pid)
			return tenant->process[i];
	return NULL;
}

void tenant_remove_pid(struct tenant *tenant, int pid)
{
	for (unsigned i = 0; i < tenant->slot_limit; i++)
		if (tenant->process[i] && tenant->process[i]->pid == pid)
			tenant_remove_process(tenant->process[i]);
}
