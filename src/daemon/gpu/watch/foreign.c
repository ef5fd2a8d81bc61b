#include "daemon/gpu/watch/foreign.h"

#include <inttypes.h>

#include "base/log.h"
#include "daemon/gpu/nvml/census_policy.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/tenant.h"

#define MIB (UINT64_C(1) << 20)

static bool is_of_tenant(const struct node *node, int pid)
{
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link) {
		for (unsigned i = 0; i < t->slot_limit; i++)
			if (t->process[i] && t->process[i]->pid == pid)
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

/* What the process held on the card when the reading was asked for, or now: the more. */
static uint64_t most_held(struct process *p, unsigned device)
{
	uint64_t before = p->census[device].used_before, now = process_used_bytes(p, device);
	uint64_t held = (before > now ? before : now) + process_unnamed_bytes(p, device);
	uint64_t away = process_swapped_bytes(p, device);
	return held > away ? held - away : 0;
}

/*
 * What the tenants' processes hold on the card by their ledgers. *ret_are_listed: NVML's list names each
 * that held something before and still does; else its pids are not ours, or it lacks some.
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

/* By the list of processes. False: it does not tell of all what they hold. */
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

void foreign_note_census(struct node *node, struct card *card, const struct census_card *seen)
{
	bool are_listed;
	uint64_t foreign = 0;
	uint64_t known = sum_known(node, card, seen, &are_listed) + drain_bytes(card);
	/* By the list, where that can be: it is not moved by what comes and goes during the reading. */
	if (!(seen->processes_known && are_listed && sum_foreign(node, card, seen, &foreign)) &&
	    seen->memory_known)
		foreign = seen->memory.used_bytes > known ? seen->memory.used_bytes - known : 0;
	if (foreign > card->foreign_bytes)
		log_debug("GPU %u: %" PRIu64 " MiB are held by processes of no tenant", card->index,
			  foreign / MIB);
	card->foreign_bytes = foreign;
	node->foreign_known |= card->index + 1 == node->card_count;
	node_admit_soon(node);
}
