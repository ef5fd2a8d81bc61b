/* What a census means: violations, what a context costs. Main thread only, no NVML. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/census.h"
#include "node/checkpoint/tenant_checkpoint.h"
#include "node/tenant.h"
#include "node/violation/violations.h"

#define MIB (UINT64_C(1) << 20)
#define CONTEXT_MIN_BYTES (16 * MIB)
#define CONTEXT_MAX_BYTES (4096 * MIB)
#define CONTEXT_STEP_BYTES (2 * MIB)
#define UNNAMED_STEP_BYTES (2 * MIB) /* what grows by less can wait for the next census */

#define load(field) atomic_load_explicit(&(field), memory_order_relaxed)

bool census_is_over(uint64_t nvml_bytes, uint64_t ledger_bytes)
{
	uint64_t slack = ledger_bytes / CENSUS_SLACK_PART;
	if (slack < CENSUS_SLACK_BYTES)
		slack = CENSUS_SLACK_BYTES;
	return nvml_bytes > ledger_bytes && nvml_bytes - ledger_bytes > slack;
}

uint64_t census_context_cost(uint64_t nvml_bytes, uint64_t ledger_bytes, uint64_t context_bytes,
			     uint64_t context_charge)
{
	/* One context, not several: what is charged for contexts is about one charge. */
	if (context_bytes == 0 || context_bytes > ledger_bytes ||
	    context_bytes >= context_charge + context_charge / 2)
		return 0;
	uint64_t others = ledger_bytes - context_bytes;
	if (nvml_bytes <= others)
		return 0;
	uint64_t cost = nvml_bytes - others;
	cost = (cost + CONTEXT_STEP_BYTES - 1) / CONTEXT_STEP_BYTES * CONTEXT_STEP_BYTES;
	return cost >= CONTEXT_MIN_BYTES && cost <= CONTEXT_MAX_BYTES ? cost : 0;
}

uint64_t census_unnamed(uint64_t nvml_bytes, uint64_t ledger_most_bytes, uint64_t counted_bytes,
			uint64_t *beyond_before)
{
	uint64_t beyond = nvml_bytes > ledger_most_bytes ? nvml_bytes - ledger_most_bytes : 0;
	uint64_t expected = counted_bytes > *beyond_before ? counted_bytes : *beyond_before;
	*beyond_before = beyond;
	return beyond < expected ? beyond : expected;
}

static void publish_context(struct node *node, struct card *card, uint64_t cost)
{
	struct tenant *t;
	log_info("GPU %u: a context costs %" PRIu64 " MiB", card->index, cost / MIB);
	card->context_bytes = cost;
	TAILQ_FOREACH(t, &node->tenants, link)
	for (unsigned i = 0; i < t->terms.device_count; i++)
		if (t->terms.device[i].card == card)
			atomic_store_explicit(&t->region.control->device[i].context_bytes, cost,
					      memory_order_relaxed);
}

/*
 * The least that was ever seen is the context's own cost: code that a process loads into it comes on
 * top. Learned only while the process stands still: ledger and NVML the same in two looks. Never
 * upwards: what it costs more is charged as unnamed, and so is the code of whoever is looked at first.
 * Nor of a process that holds what NVML may tell less of than the ledger has, as managed memory: a context
 * that is thought too cheap lets each further one pass the quota.
 */
static void learn_context(struct node *node, struct card *card, struct process *p, unsigned device,
			  uint64_t nvml_bytes)
{
	const struct region_slot_device *d = &p->tenant->region.report->slot[p->slot].device[device];
	const struct process_census *c = &p->census[device];
	uint64_t used = process_used_bytes(p, device), context = load(d->context_used_bytes);
	if (used != c->used_before || context != c->context_before ||
	    nvml_bytes != c->nvml_before || load(d->tentative_bytes) || load(d->unsure))
		return;
	uint64_t cost = census_context_cost(nvml_bytes, used, context, card->context_bytes);
	if (cost && cost < card->context_bytes)
		publish_context(node, card, cost);
}

static void check_violation(struct card *card, struct process *p, unsigned device,
			    uint64_t nvml_bytes, uint64_t ledger_bytes)
{
	struct process_census *c = &p->census[device];
	const struct node *node = p->tenant->node;
	uint64_t now_ns = clock_now_ns();
	if (!census_is_over(nvml_bytes, ledger_bytes)) {
		c->over_count = 0;
		return;
	}
	if (c->over_count++ == 0)
		c->over_since_ns = now_ns;
	/* Censuses may come soon after one another: one bad moment must not be several of them. */
	if (c->over_count >= CENSUS_OVER_COUNT &&
	    now_ns - c->over_since_ns >= VIOLATION_INTERVALS * node->config.census_ns)
		violations_note_over(node->violations, p, card->index, nvml_bytes,
				     nvml_bytes - ledger_bytes);
}

/* The most that a process's ledger said at any moment since the census was asked for. */
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
 * Writes it where the library counts it, in place of what the library had measured itself before this
 * look. Not when it has measured more since, which this look may or may not show: the next one tells.
 */
static void publish_unnamed(struct process *p, unsigned device, uint64_t unnamed)
{
	struct region_slot_device *d = &p->tenant->region.report->slot[p->slot].device[device];
	uint64_t fresh = p->census[device].fresh_before;
	if (load(d->fresh_bytes) != fresh)
		return;
	p->census[device].unnamed = unnamed;
	if (fresh && unnamed > p->census[device].measured)
		p->census[device].measured = unnamed;
	atomic_store_explicit(&d->unnamed_bytes, unnamed, memory_order_relaxed);
	atomic_compare_exchange_strong(&d->fresh_bytes, &fresh, 0);
}

/* A pid may have several slots (several copies of the library): NVML knows only their sum. */
static unsigned slots_of_pid(const struct tenant *t, int pid)
{
	unsigned count = 0;
	for (unsigned i = 0; i < t->slot_limit; i++)
		count += t->process[i] && t->process[i]->pid == pid;
	return count;
}

/* Sum of a figure over a pid's slots. */
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
	for (unsigned i = 0; i < p->slot; i++)
		if (p->tenant->process[i] && p->tenant->process[i]->pid == p->pid)
			return false;
	return true;
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

static void compare_process(struct node *node, struct card *card, struct process *p,
			    unsigned device, const struct census_card *seen)
{
	struct process_census *c = &p->census[device];
	uint64_t nvml_bytes = 0;
	for (size_t i = 0; i < seen->process_count; i++)
		if (seen->process[i].pid == p->pid && seen->process[i].used_known)
			nvml_bytes = seen->process[i].used_bytes;
	/* What is off the card counts in the ledger, which is what NVML is held against. */
	if (nvml_bytes)
		nvml_bytes += process_swapped_bytes(p, device);
	if (nvml_bytes) {
		uint64_t ledger = sum_of_pid(p->tenant, p->pid, device, process_used_bytes);
		/* A context's cost first: a wrong one would look like a violation. */
		if (slots_of_pid(p->tenant, p->pid) == 1)
			learn_context(node, card, p, device, nvml_bytes);
		/* The ledger may have moved while NVML was asked: the greater of the two is fair. */
		if (ledger < c->used_before)
			ledger = c->used_before;
		check_violation(card, p, device, nvml_bytes, ledger + c->measured);
	}
	charge_unnamed(node, p, device, nvml_bytes);
	c->nvml_before = nvml_bytes;
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
	for (unsigned d = 0; d < t->terms.device_count && !tenant_is_checkpointing(t); d++)
		for (unsigned i = 0; t->terms.device[d].card == card && i < t->slot_limit; i++)
			if (t->process[i])
				compare_process(node, card, t->process[i], d, seen);
}
