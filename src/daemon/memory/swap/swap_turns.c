#include "daemon/memory/swap/swap_turns.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/state/card_promises.h"
#include "policy/memory/swap_schedule.h"

#define POLL_NS (50 * NSEC_PER_MSEC)
#define POLL_MOVING_NS (10 * NSEC_PER_MSEC)
/* A GPU that proves to have less free memory than calculated gets this much more margin from then on. */
#define MARGIN_STEP_BYTES (UINT64_C(256) << 20)
#define MARGIN_PART 4 /* most added margin: a quarter of the GPU's memory */
#define SCALE_STEP 0.03

#define load(field) atomic_load_explicit(&(field), memory_order_relaxed)

struct swap_turns {
	struct swap_schedule swap_schedule;
	uint64_t margin_bytes[NODE_MAX_CARDS];
	struct swap_moves moves;
};

_Static_assert(NODE_MAX_CARDS <= SWAP_SCHEDULE_CARDS && REGION_MAX_DEVICES <= SWAP_SCHEDULE_PARTS,
	       "every GPU and every part has a place");

static bool is_swappable(const struct tenant *t)
{
	return t->terms.on_full == ON_FULL_SWAP;
}

/* Threads wait for the lease or for swapped-out memory, or work is in flight. False for a paused tenant. */
static bool has_work(const struct tenant *t)
{
	for (unsigned i = 0; i < t->slot_limit && !t->terms.paused; i++) {
		const struct region_slot *slot = &t->region.report->slot[i];
		for (unsigned k = 0; t->process[i] && k < t->terms.device_count; k++)
			if (load(slot->device[k].waiting) || load(slot->device[k].busy) ||
			    load(slot->device[k].launching))
				return true;
	}
	return false;
}

static enum swap_schedule_place place_of(const struct tenant *t, const struct swap_figures *f)
{
	if (swap_order_of(load(t->region.control->swap)) == SWAP_ORDER_OUT)
		return f->in || f->moving ? SWAP_SCHEDULE_LEAVING : SWAP_SCHEDULE_OUT;
	return f->out || f->moving ? SWAP_SCHEDULE_RETURNING : SWAP_SCHEDULE_IN;
}

/* Call for a tenant whose GPUs had less room than calculated: leaves more memory free there. */
static void widen_margins(struct swap_turns *turns, const struct tenant *t,
			  const struct swap_figures *f)
{
	for (unsigned k = 0; k < t->terms.device_count; k++) {
		const struct card *card = t->terms.device[k].card;
		uint64_t *margin = &turns->margin_bytes[card->index];
		if (f->device[k].out_bytes && *margin < card->info.memory_bytes / MARGIN_PART)
			*margin += MARGIN_STEP_BYTES;
	}
}

/*
 * The tenant's weight is its guarantee in percent, on several GPUs the smallest one. Tenants without a guarantee share the
 * percentage that is guaranteed to no tenant; each gets at least 1 (arbiter.h).
 */
static double weight_of(const struct node *node, const struct tenant *t)
{
	double weight = 100;
	for (unsigned k = 0; k < t->terms.device_count; k++) {
		const struct card *card = t->terms.device[k].card;
		double cores_pct = t->terms.device[k].promise.cores_pct, rest_pct = 100;
		unsigned count = 0;
		const struct tenant *other;
		TAILQ_FOREACH(other, &node->tenants, link)
			for (unsigned i = 0; i < other->terms.device_count; i++)
				if (other->terms.device[i].card == card) {
					rest_pct -= other->terms.device[i].promise.cores_pct;
					count += other->terms.device[i].promise.cores_pct <= 0;
				}
		if (cores_pct <= 0)
			cores_pct = fmax(rest_pct / fmax(count, 1), 1);
		weight = fmin(weight, cores_pct);
	}
	return weight;
}

/* A change of the share restarts lending (lend.h), so scale it (turn_share.h) only if the scale changed enough. */
static void scale_share(struct tenant *t, bool has_work, uint64_t now_ns)
{
	turn_share_observe(&t->turn_share, !t->is_away, has_work, now_ns);
	double scale = turn_share_scale(&t->turn_share);
	if (!t->is_away && fabs(scale - t->share_scale) > SCALE_STEP * t->share_scale)
		tenant_scale_share(t, scale);
}

static void count_moves(struct swap_turns *turns, struct tenant *t, enum swap_schedule_place before,
			enum swap_schedule_place now, const struct swap_figures *f)
{
	bool has_left = now == SWAP_SCHEDULE_OUT && before != SWAP_SCHEDULE_OUT;
	bool is_back = now == SWAP_SCHEDULE_IN &&
		       (before == SWAP_SCHEDULE_OUT || before == SWAP_SCHEDULE_RETURNING);
	t->moves.out += has_left;
	t->moves.back += is_back;
	turns->moves.out += has_left;
	turns->moves.back += is_back;
	for (unsigned k = 0; has_left && k < t->terms.device_count; k++)
		t->terms.device[k].card->swapped_out_bytes += f->device[k].out_bytes;
}

static void observe_tenant(struct swap_turns *turns, struct tenant *t, uint64_t now_ns)
{
	struct swap_figures f = swap_figures(t);
	struct swap_schedule_observation seen = {
		.place = place_of(t, &f),
		.part_count = t->terms.device_count,
		.has_work = has_work(t),
		.weight = weight_of(t->node, t),
		.is_out_by_user = t->terms.swapped_out,
		.is_short = f.is_short,
		.moved_ns = f.moved_ns,
		.progress = f.progress,
	};
	t->wants_room = false;
	for (unsigned k = 0; k < t->terms.device_count; k++) {
		uint64_t used = tenant_usage(t, k).used_bytes, movable = f.device[k].movable_bytes;
		seen.part[k] = (struct swap_schedule_part){
			.card = t->terms.device[k].card->index,
			.fixed_bytes = used > movable ? used - movable : 0,
			.movable_bytes = movable,
			.wanted_bytes = f.device[k].wanted_bytes,
		};
		t->wants_room |= f.device[k].wanted_bytes;
	}
	seen.has_work |= t->wants_room;
	seen.has_refused = swap_has_refused(t);
	if (seen.has_refused && !t->terms.swapped_out)
		log_info_of(tenant_log_key(&t->terms),
			    "tenant '%s': its memory can't be moved off the GPU for another tenant "
			    "now; trying again",
			    t->terms.name);
	if (f.is_short && !t->was_short)
		widen_margins(turns, t, &f);
	t->was_short = f.is_short;
	scale_share(t, seen.has_work, now_ns);
	count_moves(turns, t, turns->swap_schedule.tenant[t->swap_schedule].seen.place, seen.place,
		    &f);
	swap_schedule_observe(&turns->swap_schedule, t->swap_schedule, &seen, now_ns);
}

/*
 * How much of the GPU's memory swappable tenants can use: all except memory that is promised, granted or kept for other
 * tenants, that tenants without a quota or processes outside all tenants hold, or that the driver has not freed yet, and except
 * the margin.
 */
static uint64_t capacity_of(struct node *node, struct card *card)
{
	struct promise_card p = node_promised(node, card, NULL);
	uint64_t taken = node_taken_bytes(card, &p) + p.kept_bytes +
			 node->swap_turns->margin_bytes[card->index];
	return taken < card->info.memory_bytes ? card->info.memory_bytes - taken : 0;
}

static void publish_can_ever_fit(struct tenant *t)
{
	const struct swap_schedule *r = &t->node->swap_turns->swap_schedule;
	atomic_store(&t->region.control->swap_hope, swap_schedule_can_ever_fit(r, t->swap_schedule));
}

/* Tells each tenant whether it may have to leave its GPU. If all quotas fit together, a tenant leaves only by request. */
static void publish_likely(struct node *node, const uint64_t *capacity_bytes)
{
	uint64_t wanted_bytes[NODE_MAX_CARDS] = { 0 };
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned k = 0; is_swappable(t) && k < t->terms.device_count; k++)
			wanted_bytes[t->terms.device[k].card->index] +=
				t->terms.device[k].promise.quota_bytes;
	TAILQ_FOREACH(t, &node->tenants, link) {
		bool is_likely = false;
		for (unsigned k = 0; k < t->terms.device_count; k++) {
			unsigned card = t->terms.device[k].card->index;
			is_likely |= wanted_bytes[card] > capacity_bytes[card];
		}
		if (is_swappable(t))
			atomic_store(&t->region.control->swap_is_likely, is_likely);
	}
}

/* Call before giving any order, so that no other tenant takes the memory that a returning tenant needs. */
static void publish_bounds(struct tenant *t)
{
	const struct swap_schedule *r = &t->node->swap_turns->swap_schedule;
	for (unsigned k = 0; k < t->terms.device_count; k++) {
		const struct swap_schedule_part *p = &r->tenant[t->swap_schedule].seen.part[k];
		uint64_t more = swap_schedule_may_take(r, t->swap_schedule, k);
		uint64_t used = p->fixed_bytes + p->movable_bytes;
		atomic_store(&t->region.control->device[k].swap_bound_bytes,
			     more < UINT64_MAX - used ? used + more : UINT64_MAX);
	}
}

/* Returns true while the tenant's memory moves. */
static bool apply_order(struct tenant *t)
{
	const struct swap_schedule_tenant *r =
		&t->node->swap_turns->swap_schedule.tenant[t->swap_schedule];
	bool is_in = r->should_be_in && r->seen.place == SWAP_SCHEDULE_IN;
	bool was_away = t->is_away;
	swap_set_order(t, r->should_be_in ? SWAP_ORDER_IN : SWAP_ORDER_OUT);
	/* A tenant without room to return (is_short) is not paused: its calls run, and report the lack of memory. */
	t->is_away = !is_in && !r->seen.is_short;
	for (unsigned k = 0; t->is_away != was_away && k < t->terms.device_count; k++)
		lessee_set_paused(t->device[k].lessee, t->terms.paused || t->is_away);
	return r->seen.place == SWAP_SCHEDULE_LEAVING || r->seen.place == SWAP_SCHEDULE_RETURNING ||
	       r->should_be_in != (r->seen.place == SWAP_SCHEDULE_IN);
}

/* An adopted tenant may be off its GPU: its processes report where their memory is. */
static void schedule_tenant(struct swap_turns *turns, struct tenant *t, uint64_t now_ns)
{
	struct swap_figures f = swap_figures(t);
	if (t->swap_schedule >= 0 || t->adopting)
		return;
	t->swap_schedule = swap_schedule_add(&turns->swap_schedule,
					     !(f.out || f.moving || t->terms.swapped_out), now_ns);
}

static bool is_any_swappable(struct node *node)
{
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		if (is_swappable(t))
			return true;
	return false;
}

static struct swap_turns *new_turns(void)
{
	struct swap_schedule_config config = swap_schedule_default_config();
	struct swap_turns *turns = calloc(1, sizeof(*turns));
	if (turns)
		swap_schedule_init(&turns->swap_schedule, &config);
	return turns;
}

static bool poll_tenants(struct node *node, struct swap_turns *turns, uint64_t now_ns)
{
	uint64_t capacity_bytes[NODE_MAX_CARDS];
	bool is_moving = false;
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link) {
		if (!is_swappable(t))
			continue;
		schedule_tenant(turns, t, now_ns);
		if (t->swap_schedule >= 0)
			observe_tenant(turns, t, now_ns);
	}
	for (unsigned i = 0; i < node->card_count; i++)
		capacity_bytes[i] = capacity_of(node, &node->card[i]);
	swap_schedule_step(&turns->swap_schedule, capacity_bytes, node->card_count, now_ns);
	publish_likely(node, capacity_bytes);
	TAILQ_FOREACH(t, &node->tenants, link)
		if (is_swappable(t) && t->swap_schedule >= 0) {
			publish_bounds(t);
			publish_can_ever_fit(t);
		}
	TAILQ_FOREACH(t, &node->tenants, link)
		if (is_swappable(t) && t->swap_schedule >= 0)
			is_moving |= apply_order(t);
	return is_moving;
}

void swap_turns_update(struct node *node)
{
	bool is_moving = false;
	if (!is_any_swappable(node))
		return;
	if (!node->swap_turns)
		node->swap_turns = new_turns();
	if (node->swap_turns)
		is_moving = poll_tenants(node, node->swap_turns, clock_now_ns());
	loop_arm(node->swap_timer, is_moving ? POLL_MOVING_NS : POLL_NS, 0);
}

void swap_turns_due(void *data, uint32_t events)
{
	swap_turns_update(data);
}

void swap_turns_remove(struct tenant *t)
{
	if (t->swap_schedule >= 0)
		swap_schedule_remove(&t->node->swap_turns->swap_schedule, t->swap_schedule);
	t->swap_schedule = -1;
}

struct swap_moves swap_turns_moves(const struct node *node)
{
	return node->swap_turns ? node->swap_turns->moves : (struct swap_moves){ 0 };
}

void swap_turns_free(struct node *node)
{
	free(node->swap_turns);
	node->swap_turns = NULL;
}
