#include "daemon/memory/memory_waiters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/tenant.h"
#include "daemon/state/tenant_state.h"
#include "daemon/state/use.h"
#include "daemon/tasks/watch/gpu_watch.h"

#define MIB (UINT64_C(1) << 20)
/* After a restart of the daemon, a process that waited repeats its request within this time (library/memory/reserve_wait.c). */
#define RETURN_NS (200 * NSEC_PER_MSEC)
#define RETURN_LOOK_NS (20 * NSEC_PER_MSEC)
/*
 * A grant (the memory that a waiting tenant may hold) grows in steps of this size, so that one request serves many allocations.
 * If a step is more than half of the GPU's free memory, the grant grows only by the requested bytes.
 */
#define GROWTH_STEP_BYTES (256 * MIB)

static bool waits(const struct tenant *t)
{
	return t->terms.on_full == ON_FULL_WAIT;
}

static struct region_want *want_of(const struct tenant *t, unsigned slot, unsigned device)
{
	return &t->region.report->want[slot][device];
}

/* The bytes that the tenant's processes request on the device, at most the GPU's memory. Returns false if they request none. */
static bool read_requests(struct tenant *t, unsigned device, uint64_t *ret_bytes)
{
	uint64_t most = t->terms.device[device].card->info.memory_bytes, sum = 0;
	for (unsigned i = 0; i < t->slot_limit; i++) {
		const struct region_want *w = want_of(t, i, device);
		if (!t->process[i] || atomic_load(&w->ask) == atomic_load(&w->answered))
			continue;
		uint64_t bytes = atomic_load(&w->bytes);
		sum += bytes < most - sum ? bytes : most - sum;
	}
	*ret_bytes = sum;
	return sum > 0;
}

uint64_t memory_wait_wanted_bytes(struct tenant *tenant, unsigned device)
{
	uint64_t bytes;
	return read_requests(tenant, device, &bytes) ? bytes : 0;
}

static bool has_request(struct tenant *t)
{
	uint64_t bytes;
	for (unsigned i = 0; i < t->terms.device_count; i++)
		if (read_requests(t, i, &bytes))
			return true;
	return false;
}

static void acknowledge(struct tenant *t)
{
	for (unsigned d = 0; d < t->terms.device_count; d++) {
		for (unsigned i = 0; i < t->slot_limit; i++) {
			struct region_want *w = want_of(t, i, d);
			if (t->process[i])
				atomic_store(&w->answered, atomic_load(&w->ask));
		}
		region_wake_memory_grant(t->region.control, d);
	}
}

static void publish(struct tenant *t)
{
	for (unsigned i = 0; i < t->terms.device_count; i++)
		region_set_memory_grant(t->region.control, i, t->memory_wait.granted_bytes[i]);
}

static void count_end(struct tenant *t, const struct memory_wait *wait, enum wait_outcome outcome,
		      uint64_t now_ns)
{
	uint64_t waited_ns = now_ns - wait->since_ns;
	if (wait->state != MEMORY_WAIT_QUEUED)
		return;
	t->waits.ended[outcome]++;
	t->waits.waited_ns += waited_ns;
	t->node->waits.ended[outcome]++;
	t->node->waits.waited_ns += waited_ns;
}

void memory_wait_begin(struct tenant *tenant)
{
	atomic_store(&tenant->region.control->memory_waits, waits(tenant));
	atomic_store(&tenant->region.control->memory_wait_ns, tenant->terms.wait_timeout_ns);
	publish(tenant);
}

/* The tenant's whole quota is promised now, so it needs no grants. terms.on_full is still "wait" here. */
static void stop(struct tenant *tenant)
{
	count_end(tenant, &tenant->memory_wait, WAIT_GRANTED, clock_now_ns());
	tenant->memory_wait = (struct memory_wait){ 0 };
	atomic_store(&tenant->region.control->memory_waits, 0);
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		region_set_memory_grant(tenant->region.control, i,
					tenant->terms.device[i].promise.quota_bytes);
	acknowledge(tenant);
}

void memory_wait_restore(struct tenant *tenant, const struct memory_wait_past *past)
{
	struct memory_wait *a = &tenant->memory_wait;
	uint64_t now_ns = clock_now_ns();
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		a->granted_bytes[i] = past->granted_bytes[i];
		if (past->granted_bytes[i])
			a->state = MEMORY_WAIT_HOLDING;
	}
	/* Restore the place in the queue. A since_ns in the future is from an earlier boot. */
	if (a->state == MEMORY_WAIT_NONE && past->arrival && past->since_ns <= now_ns) {
		a->past = *past;
		a->past_until_ns = now_ns + tenant->node->config.adopt_wait_ns + RETURN_NS;
		if (tenant->node->arrivals < past->arrival)
			tenant->node->arrivals = past->arrival;
	}
	publish(tenant);
}

static uint64_t reserve_bytes(const struct tenant *t, unsigned device)
{
	const struct promise *p = &t->terms.device[device].promise;
	return p->reserve_bytes && p->reserve_bytes < p->quota_bytes ? p->reserve_bytes
								     : p->quota_bytes;
}

/* How many bytes must be free on a device before the tenant gets its first grant, which has that size. */
static uint64_t initial_bytes(struct tenant *t, unsigned device)
{
	uint64_t quota = t->terms.device[device].promise.quota_bytes, wanted;
	uint64_t need = reserve_bytes(t, device);
	read_requests(t, device, &wanted);
	wanted += tenant_usage(t, device).used_bytes;
	if (wanted > need)
		need = wanted < quota ? wanted : quota;
	return need;
}

void memory_wait_end(struct tenant *tenant)
{
	count_end(tenant, &tenant->memory_wait, WAIT_LEFT, clock_now_ns());
}

static void begin_to_wait(struct node *node, struct tenant *t, uint64_t now_ns)
{
	struct memory_wait *a = &t->memory_wait;
	struct memory_wait_past past = a->past;
	if (!past.arrival)
		past = (struct memory_wait_past){ .arrival = ++node->arrivals, .since_ns = now_ns };
	*a = (struct memory_wait){ .state = MEMORY_WAIT_QUEUED,
				   .arrival = past.arrival,
				   .since_ns = past.since_ns };
	t->waits.begun++;
	node->waits.begun++;
	tenant_save_soon(t);
}

/* A tenant that waited under the previous daemon keeps its place until it has repeated its request. */
static bool is_to_return(struct tenant *t, uint64_t now_ns)
{
	return t->memory_wait.past.arrival && now_ns < t->memory_wait.past_until_ns &&
	       t->process_count > 0 && !has_request(t);
}

static void release_grant(struct tenant *t)
{
	log_debug("tenant '%s': holds no memory any more", t->terms.name);
	t->memory_wait = (struct memory_wait){ 0 };
	publish(t);
	tenant_save_soon(t);
}

/* For a tenant with memory but no grant: on_full just became "wait", or the previous daemon's grant was not saved. */
static void grant_held(struct tenant *t)
{
	struct memory_wait *a = &t->memory_wait;
	count_end(t, &t->memory_wait, WAIT_GRANTED, clock_now_ns());
	*a = (struct memory_wait){ .state = MEMORY_WAIT_HOLDING };
	for (unsigned i = 0; i < t->terms.device_count; i++)
		a->granted_bytes[i] = initial_bytes(t, i);
	log_info_of(tenant_log_key(&t->terms),
		    "tenant '%s': holds memory that was not granted: it counts as granted now",
		    t->terms.name);
	tenant_save_soon(t);
	publish(t);
	acknowledge(t);
}

static void follow_quota(struct tenant *t)
{
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		uint64_t *granted = &t->memory_wait.granted_bytes[i];
		uint64_t quota = t->terms.device[i].promise.quota_bytes;
		if (*granted <= quota)
			continue;
		*granted = quota;
		publish(t);
	}
}

void memory_wait_give_up(struct tenant *tenant)
{
	if (tenant->memory_wait.state != MEMORY_WAIT_QUEUED)
		return;
	log_info_of(tenant_log_key(&tenant->terms),
		    "tenant '%s': no longer waits for memory, because it was removed or its "
		    "wait was cancelled",
		    tenant->terms.name);
	count_end(tenant, &tenant->memory_wait, WAIT_GIVEN_UP, clock_now_ns());
	tenant->memory_wait = (struct memory_wait){ 0 };
	acknowledge(tenant);
	node_grant_soon(tenant->node);
}

static void leave_queue(struct tenant *t, uint64_t now_ns)
{
	count_end(t, &t->memory_wait, WAIT_LEFT, now_ns);
	t->memory_wait = (struct memory_wait){ 0 };
	tenant_save_soon(t);
}

static void update_state(struct node *node, struct tenant *t, uint64_t now_ns)
{
	struct memory_wait *a = &t->memory_wait;
	bool is_empty = !t->process_count && !t->old;
	switch (a->state) {
	case MEMORY_WAIT_HOLDING:
		follow_quota(t);
		if (is_empty && !tenant_used_bytes(t))
			release_grant(t);
		break;
	case MEMORY_WAIT_NONE:
	case MEMORY_WAIT_QUEUED:
		if (tenant_used_bytes(t))
			grant_held(t);
		else if (!has_request(t) && a->state == MEMORY_WAIT_QUEUED)
			leave_queue(t, now_ns);
		else if (!has_request(t))
			*a = (struct memory_wait){ 0 };
		else if (a->state == MEMORY_WAIT_NONE)
			begin_to_wait(node, t, now_ns);
		break;
	}
}

struct grant_card memory_wait_card(struct node *node, const struct card *card)
{
	struct promise_card p = node_promised(node, card, NULL);
	return (struct grant_card){ .size_bytes = card->info.memory_bytes,
				    .taken_bytes = node_taken_bytes(card, &p) + p.movable_bytes +
						   gpu_watch_starting_bytes(node->watch, card->index),
				    .kept_bytes = card->kept_bytes };
}

static struct order_key key_of(struct tenant *t, uint64_t now_ns)
{
	const struct memory_wait *a = &t->memory_wait;
	return (struct order_key){ .use_ns = use_ns(t, now_ns),
				   .arrival = a->arrival,
				   .since_ns = a->since_ns,
				   .passes = a->passes,
				   .id = (uint32_t)strtoul(t->terms.id, NULL, 16) };
}

static uint64_t growth_bytes(const struct node *node, struct tenant *t, unsigned device,
			     uint64_t wanted, const struct grant_card *cards)
{
	uint64_t quota = t->terms.device[device].promise.quota_bytes;
	uint64_t granted = t->memory_wait.granted_bytes[device];
	uint64_t target = tenant_usage(t, device).used_bytes + wanted;
	uint64_t rounded = (target + GROWTH_STEP_BYTES - 1) / GROWTH_STEP_BYTES * GROWTH_STEP_BYTES;
	const struct grant_card *card = &cards[t->terms.device[device].card - node->card];
	if (rounded > granted && rounded - granted <= grant_free_bytes(card) / 2)
		target = rounded;
	if (target > quota)
		target = quota;
	return target > granted ? target - granted : 0;
}

static bool make_request(const struct node *node, struct tenant *t, uint64_t now_ns,
			 const struct grant_card *cards, struct grant_request *r)
{
	bool is_growth = t->memory_wait.state == MEMORY_WAIT_HOLDING;
	*r = (struct grant_request){ .key = key_of(t, now_ns), .is_growth = is_growth, .owner = t };
	/*
	 * Retired tenants get no more memory. A tenant paused before its first grant would not use the memory. A paused tenant
	 * that has a grant may grow, since its processes may allocate.
	 */
	if (t->memory_wait.state == MEMORY_WAIT_NONE || t->terms.is_retired ||
	    (!is_growth && t->terms.paused))
		return false;
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		uint64_t wanted = 0;
		bool is_asked = read_requests(t, i, &wanted);
		if (is_growth && !is_asked)
			continue;
		r->need[r->need_count++] = (struct grant_need){
			.card = t->terms.device[i].card->index,
			.bytes = is_growth ? growth_bytes(node, t, i, wanted, cards)
					   : initial_bytes(t, i),
		};
	}
	return r->need_count > 0;
}

static void apply_growth(struct tenant *t, const struct grant_request *r)
{
	for (unsigned n = 0; n < r->need_count; n++)
		for (unsigned i = 0; i < t->terms.device_count; i++)
			if (t->terms.device[i].card->index == r->need[n].card)
				t->memory_wait.granted_bytes[i] += r->need[n].bytes;
}

/*
 * A tenant without a promise may have allocated since the decision. Then more of a GPU's memory is granted, promised or held
 * than it has. Lowers the quotas of such tenants first, so that they cannot allocate more.
 */
static bool is_overfull(struct node *node, const struct tenant *t)
{
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		const struct card *card = t->terms.device[i].card;
		struct promise_card p;
		node_update_unpromised_quotas(node, card);
		p = node_promised(node, card, NULL);
		if (p.promised_bytes + p.unpromised_held_bytes + p.granted_bytes + p.movable_bytes >
		    p.memory_bytes)
			return true;
	}
	return false;
}

static void log_grant(const struct node *node, const struct tenant *t, uint64_t waited_ns,
		      unsigned waiting)
{
	char list[256] = "";
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		size_t n = strlen(list);
		snprintf(list + n, sizeof(list) - n, "%s%" PRIu64 " MiB of GPU %u", i ? ", " : "",
			 t->memory_wait.granted_bytes[i] / MIB, t->terms.device[i].card->index);
	}
	log_info_of(tenant_log_key(&t->terms),
		    "tenant '%s': granted %s after %.3f s (it has used %.3f s of GPU time; %u more "
		    "tenants wait)",
		    t->terms.name, list, (double)waited_ns / (double)NSEC_PER_SEC,
		    use_ns(t, clock_now_ns()) / (double)NSEC_PER_SEC, waiting);
}

static void grant(struct node *node, struct tenant *t, const struct grant_request *r,
		  unsigned waiting, uint64_t now_ns)
{
	struct memory_wait *a = &t->memory_wait;
	struct memory_wait before = *a;
	*a = (struct memory_wait){ .state = MEMORY_WAIT_HOLDING };
	apply_growth(t, r);
	if (is_overfull(node, t)) {
		*a = before;
		return;
	}
	count_end(t, &before, WAIT_GRANTED, now_ns);
	tenant_state_save_or_retry(
		t, false,
		"its memory is granted, but a restarted allotd may promise that memory "
		"again");
	log_grant(node, t, now_ns - before.since_ns, waiting);
	publish(t);
	acknowledge(t);
}

static void apply_verdict(struct node *node, struct grant_request *r, unsigned waiting,
			  uint64_t now_ns)
{
	struct tenant *t = r->owner;
	if (!r->is_growth) {
		t->memory_wait.passes = r->key.passes;
		t->memory_wait.place = r->place;
	}
	if (r->verdict == GRANT_GRANTED && !r->is_growth) {
		grant(node, t, r, waiting, now_ns);
	} else if (r->verdict == GRANT_GRANTED) {
		apply_growth(t, r);
		tenant_save_soon(t);
		publish(t);
		acknowledge(t);
	} else if (r->verdict == GRANT_REFUSED) {
		log_info_of(tenant_log_key(&t->terms),
			    "tenant '%s': more memory refused: the GPU has none free",
			    t->terms.name);
		acknowledge(t);
	}
}

static void renumber(struct grant_request *list, size_t count)
{
	unsigned place = 0;
	for (size_t i = 0; i < count; i++) {
		struct tenant *t = list[i].owner;
		if (t->memory_wait.state != MEMORY_WAIT_QUEUED)
			continue;
		t->memory_wait.place = ++place;
		if (!t->memory_wait.is_logged)
			log_info_of(tenant_log_key(&t->terms),
				    "tenant '%s': waits for memory, at place %u of the queue",
				    t->terms.name, place);
		t->memory_wait.is_logged = true;
	}
}

static void decide_all(struct node *node, uint64_t now_ns)
{
	struct order_bounds bounds = { .patience_ns = node->config.wait_patience_ns,
				       .passes_most = ORDER_PASSES_MOST };
	cleanup_free struct grant_request *list = calloc(node->tenant_count + 1, sizeof(*list));
	struct grant_card cards[NODE_MAX_CARDS];
	size_t count = 0;
	unsigned waiting = 0;
	struct tenant *t;
	if (!list)
		return; /* the next tick tries again */
	for (unsigned i = 0; i < node->card_count; i++)
		cards[i] = memory_wait_card(node, &node->card[i]);
	TAILQ_FOREACH(t, &node->tenants, link)
		if (waits(t) && make_request(node, t, now_ns, cards, &list[count]))
			count++;
	grant_decide(cards, node->card_count, list, count, now_ns, &bounds);
	for (size_t i = 0; i < count; i++)
		waiting += list[i].verdict == GRANT_WAITS;
	for (unsigned i = 0; i < node->card_count; i++)
		node->card[i].kept_bytes = cards[i].kept_bytes;
	for (size_t i = 0; i < count; i++)
		apply_verdict(node, &list[i], waiting, now_ns);
	renumber(list, count);
	for (unsigned i = 0; i < node->card_count; i++)
		node_update_unpromised_quotas(node, &node->card[i]);
}

void memory_wait_set_on_full(struct tenant *tenant, enum on_full on_full)
{
	bool waited = tenant->terms.on_full == ON_FULL_WAIT;
	bool waits = on_full == ON_FULL_WAIT;
	if (on_full == tenant->terms.on_full)
		return;
	if (waited)
		stop(tenant);
	tenant->terms.on_full = on_full;
	tenant->node->waiter_count += waits;
	tenant->node->waiter_count -= waited;
	if (waits)
		memory_wait_begin(tenant);
	node_grant_soon(tenant->node);
}

void memory_wait_due(void *data, uint32_t events)
{
	struct node *node = data;
	uint64_t now_ns = clock_now_ns();
	struct tenant *t;
	/*
	 * Decide nothing while it is unknown how much memory is free. Processes of the previous daemon may still register with
	 * this one (tenant.adopting), or no census has yet measured the memory of processes that belong to no tenant.
	 */
	if (tenant_is_any_adopting(node) || !node->foreign_known)
		return;
	TAILQ_FOREACH(t, &node->tenants, link)
		if (waits(t) && is_to_return(t, now_ns)) {
			loop_arm(node->memory_wait_timer, RETURN_LOOK_NS, 0);
			return;
		}
	TAILQ_FOREACH(t, &node->tenants, link)
		if (waits(t)) {
			use_update(t, now_ns);
			update_state(node, t, now_ns);
		}
	decide_all(node, now_ns);
}
