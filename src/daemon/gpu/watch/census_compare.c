#include "daemon/gpu/watch/census_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/nvml/census_policy.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/violation/violations.h"
#include "daemon/util/procfs.h"

#define MIB (UINT64_C(1) << 20)
/* While NVML shows less than 1/8 of the configured context size for a process, the process's context is not complete. */
#define CONTEXT_LEAST_PART 8
/* growth of a process's unnamed memory (allocated by no call) that brings the next census forward */
#define UNNAMED_STEP_BYTES (2 * MIB)

#define load(field) atomic_load_explicit(&(field), memory_order_relaxed)

static void publish_context(struct node *node, struct card *card, uint64_t cost)
{
	struct tenant *t;
	log_info("GPU %u: each CUDA context takes %" PRIu64 " MiB of the GPU's memory", card->index,
		 cost / MIB);
	card->context_bytes = cost;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->terms.device_count; i++)
			if (t->terms.device[i].card == card)
				atomic_store_explicit(&t->region.control->device[i].context_bytes,
						      cost, memory_order_relaxed);
}

/*
 * Learns from NVML what a context costs, because tenants can falsify their ledgers. The smallest figure of all processes bounds
 * the cost, since each includes a context. Figures of unfinished contexts are too small: a figure counts only if it is stable
 * and the process has allocated or launched. MPS clients do not count: their contexts are smaller.
 */
static void learn_context(struct node *node, struct card *card, struct process *p, unsigned device,
			  uint64_t nvml_bytes)
{
	const struct region_slot_device *d = &p->tenant->region.report->slot[p->slot].device[device];
	struct process_census *c = &p->census[device];
	bool is_whole = load(d->launches) || load(d->used_bytes) > load(d->context_used_bytes);
	bool is_settled = is_whole && nvml_bytes == c->nvml_before &&
			  nvml_bytes >= node->config.context_bytes / CONTEXT_LEAST_PART;
	if (nvml_bytes >= card->context_bytes || space_is_client(p->tenant) ||
	    !census_confirm(&c->settled, is_settled, clock_now_ns(),
			    VIOLATION_INTERVALS * node->config.census_ns) ||
	    procfs_is_stopped(p->pid))
		return;
	/*
	 * Only figures of two owners confirm a cost. An owner is a user, because a user could falsify the figures of all its
	 * tenants. But root starts tenants for others, and a private daemon has only one user: there, each tenant is an owner.
	 */
	const struct tenant_terms *terms = &p->tenant->terms;
	char owner[sizeof(card->context_least.tenant)];
	if (node->is_private || !terms->uid)
		snprintf(owner, sizeof(owner), "%s", terms->id);
	else
		snprintf(owner, sizeof(owner), "uid %u", (unsigned)terms->uid);
	uint64_t cost = census_confirmed_context(&card->context_least, owner, nvml_bytes);
	if (cost < card->context_bytes)
		publish_context(node, card, cost);
}

static void check_violation(struct card *card, struct process *p, unsigned device,
			    uint64_t nvml_bytes, uint64_t ledger_bytes)
{
	const struct node *node = p->tenant->node;
	if (census_confirm(&p->census[device].over, census_is_over(nvml_bytes, ledger_bytes),
			   clock_now_ns(), VIOLATION_INTERVALS * node->config.census_ns))
		violations_note_over(node->violations, p->tenant, p->pid, VIOLATION_OVER_LEDGER,
				     card->index, nvml_bytes, nvml_bytes - ledger_bytes);
}

/*
 * The most that the process's ledger is known to have had since the census was requested: its value then, its value now, or its
 * peak. The peak counts only if the library recorded it for this census.
 */
static uint64_t ledger_most(struct process *p, unsigned device)
{
	const struct region_slot_device *d = &p->tenant->region.report->slot[p->slot].device[device];
	uint64_t most = process_used_bytes(p, device);
	if (p->census[device].used_before > most)
		most = p->census[device].used_before;
	if (atomic_load_explicit(&d->census, memory_order_acquire) !=
	    load(p->tenant->region.control->census))
		return most;
	uint64_t peak = load(d->census_peak_bytes);
	return peak > most ? peak : most;
}

/*
 * Publishes the unnamed bytes (allocated by no call), so that the library counts them. They replace fresh_bytes, the library's
 * own measurement from before this census. If the library has changed fresh_bytes since, only the next census publishes.
 */
static void publish_unnamed(struct process *p, unsigned device, uint64_t unnamed)
{
	struct region_slot_device *d = &p->tenant->region.report->slot[p->slot].device[device];
	uint64_t fresh = p->census[device].fresh_before;
	if (load(d->fresh_bytes) != fresh)
		return;
	p->census[device].unnamed = unnamed;
	/*
	 * Add to `measured` the bytes in `fresh`, which the library has reported itself. compare_process() lets the process
	 * exceed its ledger by `measured`, which therefore must not exceed `unnamed`.
	 */
	uint64_t *measured = &p->census[device].measured;
	if (*measured > unnamed)
		*measured = unnamed;
	*measured += fresh < unnamed - *measured ? fresh : unnamed - *measured;
	atomic_store_explicit(&d->unnamed_bytes, unnamed, memory_order_relaxed);
	atomic_compare_exchange_strong(&d->fresh_bytes, &fresh, 0);
}

/* 1, since join_tenant() gives a process only one slot. If a pid has several slots all the same, NVML shows only their sum. */
static unsigned slots_of_pid(const struct tenant *t, int pid)
{
	unsigned count = 0;
	for (unsigned i = 0; i < t->slot_limit; i++)
		count += t->process[i] && t->process[i]->pid == pid;
	return count;
}

static uint64_t sum_of_pid(const struct tenant *t, int pid, unsigned device,
			   uint64_t (*figure)(struct process *, unsigned))
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < t->slot_limit; i++)
		if (t->process[i] && t->process[i]->pid == pid)
			sum += figure(t->process[i], device);
	return sum;
}

static bool is_first_slot(const struct process *p)
{
	return tenant_process_of(p->tenant, p->pid) == p;
}

static void charge_unnamed(struct node *node, struct process *p, unsigned device,
			   uint64_t nvml_bytes)
{
	struct process_census *c = &p->census[device];
	if (!is_first_slot(p))
		return;
	uint64_t most = sum_of_pid(p->tenant, p->pid, device, ledger_most);
	uint64_t counted = sum_of_pid(p->tenant, p->pid, device, process_unnamed_bytes);
	publish_unnamed(p, device, census_unnamed(nvml_bytes, most, counted, &c->beyond_before));
	if (c->beyond_before >= c->unnamed + UNNAMED_STEP_BYTES)
		loop_arm(node->census_timer,
			 node->config.census_ns < CENSUS_CONFIRM_NS ? node->config.census_ns
								    : CENSUS_CONFIRM_NS,
			 node->census_every_ns);
}

/* The larger figure if NVML lists the process twice; 0 if unknown. */
static uint64_t nvml_bytes_of(const struct census_card *seen, int pid)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < seen->process_count; i++)
		if (seen->process[i].pid == pid && seen->process[i].used_known &&
		    seen->process[i].used_bytes > bytes)
			bytes = seen->process[i].used_bytes;
	return bytes;
}

/* Nonzero if memory was swapped during the census. NVML and the slot may then show different moments, and count bytes twice. */
static uint64_t has_moved(struct process *p, unsigned device)
{
	const struct process_census *c = &p->census[device];
	return c->was_moving || process_is_moving(p) ||
	       c->swapped_before != process_swapped_bytes(p, device);
}

static void compare_process(struct node *node, struct card *card, struct process *p,
			    unsigned device, const struct census_card *seen)
{
	struct process_census *c = &p->census[device];
	uint64_t nvml_bytes = nvml_bytes_of(seen, p->pid);
	/* While memory is swapped, NVML's figure and the ledger cannot be compared: keep the previous results. */
	if (sum_of_pid(p->tenant, p->pid, device, has_moved)) {
		c->nvml_before = nvml_bytes;
		return;
	}
	/* The ledger includes swapped-out memory. */
	uint64_t held_bytes = nvml_bytes ? nvml_bytes + process_swapped_bytes(p, device) : 0;
	if (nvml_bytes) {
		uint64_t ledger = sum_of_pid(p->tenant, p->pid, device, process_used_bytes);
		if (slots_of_pid(p->tenant, p->pid) == 1)
			learn_context(node, card, p, device, nvml_bytes);
		/* The ledger may have changed while NVML was read: use the larger value. */
		if (ledger < c->used_before)
			ledger = c->used_before;
		check_violation(card, p, device, held_bytes, ledger + c->measured);
	}
	charge_unnamed(node, p, device, held_bytes);
	c->nvml_before = nvml_bytes;
}

/* NVML's figures for a tenant's processes on one card. */
struct quota_look {
	uint64_t context_bytes;
	uint64_t sum;
	/* bytes permitted beyond the quota: one context for each process after the first */
	uint64_t contexts;
	uint64_t largest;
	int largest_pid; /* 0: none */
};

static void add_process(struct quota_look *look, const struct census_card *seen, int pid)
{
	uint64_t bytes = nvml_bytes_of(seen, pid);
	if (look->sum)
		look->contexts += bytes < look->context_bytes ? bytes : look->context_bytes;
	look->sum += bytes;
	if (bytes > look->largest) {
		look->largest = bytes;
		look->largest_pid = pid;
	}
}

/*
 * Checks the quota by NVML's figures alone. These figures include contexts, which may cost more than was charged, and loaded
 * code. So a tenant may exceed its quota by one context for each process after the first, but at most by the quota itself.
 */
static void check_quota(struct card *card, struct tenant *t, unsigned device,
			const struct census_card *seen)
{
	uint64_t quota = t->terms.device[device].promise.quota_bytes;
	struct quota_look look = { .context_bytes = card->context_bytes };
	for (unsigned i = 0; i < t->slot_limit; i++)
		if (t->process[i] && is_first_slot(t->process[i]))
			add_process(&look, seen, t->process[i]->pid);
	for (const struct old_process *o = t->old; o; o = o->next)
		if (!o->registered)
			add_process(&look, seen, o->pid);
	uint64_t contexts = look.contexts < quota ? look.contexts : quota;
	if (census_confirm(&t->device[device].over, census_is_over(look.sum, quota + contexts),
			   clock_now_ns(), VIOLATION_INTERVALS * t->node->config.census_ns))
		violations_note_over(t->node->violations, t, look.largest_pid, VIOLATION_OVER_QUOTA,
				     card->index, look.largest, look.sum - quota);
}

void census_compare(struct node *node, unsigned card_index, const struct census_card *seen)
{
	struct card *card = &node->card[card_index];
	struct tenant *t;
	if (seen->memory_known) {
		card->memory_known = true;
		card->memory_used_bytes = seen->memory.used_bytes;
	}
	if (!seen->processes_known)
		return;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned d = 0; d < t->terms.device_count; d++) {
			if (t->terms.device[d].card != card)
				continue;
			for (unsigned i = 0; i < t->slot_limit && !tenant_is_checkpointing(t); i++)
				if (t->process[i])
					compare_process(node, card, t->process[i], d, seen);
			check_quota(card, t, d, seen);
		}
}

static bool is_of_tenant(const struct node *node, int pid)
{
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link) {
		if (tenant_process_of(t, pid))
			return true;
		for (const struct old_process *o = t->old; o; o = o->next)
			if (o->pid == pid)
				return true;
	}
	return false;
}

static bool is_listed(const struct census_card *seen, int pid)
{
	for (size_t i = 0; i < seen->process_count; i++)
		if (seen->process[i].pid == pid)
			return true;
	return false;
}

/* The larger of the process's memory on the card now and its memory there when the census was requested. */
static uint64_t most_held(struct process *p, unsigned device)
{
	uint64_t before = p->census[device].used_before, now = process_used_bytes(p, device);
	uint64_t held = (before > now ? before : now) + process_unnamed_bytes(p, device);
	uint64_t away = has_moved(p, device) ? 0 : process_swapped_bytes(p, device);
	return held > away ? held - away : 0;
}

/*
 * *ret_are_listed is false if NVML's list lacks a process that held memory before and after the reading. The list is then
 * incomplete, or has pids of another namespace.
 */
static uint64_t sum_known(const struct node *node, const struct card *card,
			  const struct census_card *seen, bool *ret_are_listed)
{
	uint64_t sum = 0;
	struct tenant *t;
	*ret_are_listed = true;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned d = 0; d < t->terms.device_count; d++) {
			if (t->terms.device[d].card != card)
				continue;
			for (unsigned i = 0; i < t->slot_limit; i++) {
				struct process *p = t->process[i];
				if (!p)
					continue;
				sum += most_held(p, d);
				if (p->census[d].used_before && process_used_bytes(p, d) &&
				    !tenant_is_checkpointing(t) && !is_listed(seen, p->pid))
					*ret_are_listed = false;
			}
			sum += atomic_load(&t->region.control->device[d].unslotted_bytes);
		}
	return sum;
}

/*
 * Sums the memory of processes that belong to no tenant, without ended processes whose memory is draining (drain.h): that is
 * counted separately. Returns false if the driver does not report a process's memory.
 */
static bool sum_foreign(const struct node *node, const struct card *card,
			const struct census_card *seen, uint64_t *ret_bytes)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < seen->process_count; i++) {
		const struct gpu_process *p = &seen->process[i];
		if (!p->used_known)
			return false;
		if (!is_of_tenant(node, p->pid) && !drain_has(card, p->pid))
			sum += p->used_bytes;
	}
	*ret_bytes = sum;
	return true;
}

void census_count_foreign(struct node *node, struct card *card, const struct census_card *seen)
{
	bool are_listed;
	uint64_t foreign = 0;
	uint64_t known = sum_known(node, card, seen, &are_listed) + drain_bytes(card);
	/* Prefer NVML's list of processes: the difference below is wrong if a tenant allocates or frees during the reading. */
	if (!(seen->processes_known && are_listed && sum_foreign(node, card, seen, &foreign)) &&
	    seen->memory_known)
		foreign = seen->memory.used_bytes > known ? seen->memory.used_bytes - known : 0;
	if (foreign > card->foreign_bytes)
		log_debug("GPU %u: %" PRIu64 " MiB are held by processes of no tenant", card->index,
			  foreign / MIB);
	card->foreign_bytes = foreign;
	node->foreign_known |= card->index + 1 == node->card_count;
	node_grant_soon(node);
}
