#include "node/swap_turns.h"

#include <inttypes.h>
#include <stdlib.h>

#include "arbiter/residence.h"
#include "base/clock.h"
#include "base/log.h"
#include "node/drain.h"
#include "node/swap.h"

#define LOOK_NS (50 * NSEC_PER_MSEC)
#define LOOK_MOVING_NS (10 * NSEC_PER_MSEC)
/* What the card turned out not to have is left free from then on, so much more at a time. */
#define MARGIN_STEP_BYTES (UINT64_C(256) << 20)
#define MARGIN_PART 4 /* of the card, at most */

#define load(field) atomic_load_explicit(&(field), memory_order_relaxed)

struct swap_turns {
	struct residence residence;
	uint64_t margin_bytes;
};

static bool is_here(const struct tenant *t, const struct card *card)
{
	return t->terms.on_full == ON_FULL_SWAP && t->terms.device[0].card == card;
}

static struct swap_turns *turns_of(const struct tenant *t)
{
	return t->terms.device[0].card->swap_turns;
}

bool swap_turns_is_away(const struct tenant *t)
{
	return t->is_away;
}

/* Threads that wait at the gate, at the hold or for an allocation, or work in flight. */
static bool has_work(const struct tenant *t, uint64_t *ret_wanted)
{
	bool works = false;
	*ret_wanted = 0;
	for (unsigned i = 0; i < t->slot_limit; i++) {
		const struct region_slot *slot = &t->region.report->slot[i];
		if (!t->process[i])
			continue;
		uint64_t wanted = load(slot->swap_wanted_bytes);
		uint64_t most = t->terms.device[0].card->info.memory_bytes;
		*ret_wanted += wanted < most - *ret_wanted ? wanted : most - *ret_wanted;
		works |= load(slot->device[0].waiting) || load(slot->device[0].busy) ||
			 load(slot->device[0].launching);
	}
	return works && !t->terms.paused;
}

static enum residence_place place_of(const struct tenant *t, const struct swap_figures *f)
{
	if (swap_order_of(load(t->region.control->swap)) == SWAP_ORDER_OUT)
		return f->in || f->moving ? RESIDENCE_LEAVING : RESIDENCE_OUT;
	return f->out || f->moving ? RESIDENCE_RETURNING : RESIDENCE_IN;
}

static void see(struct tenant *t, uint64_t now_ns)
{
	struct swap_turns *turns = turns_of(t);
	struct swap_figures f = swap_figures(t);
	struct residence_seen seen = {
		.place = place_of(t, &f),
		.movable_bytes = f.swappable_bytes,
		.is_put_out = t->terms.swapped_out,
		.is_short = f.is_short,
		.moved_ns = f.moved_ns,
		.progress = f.progress,
	};
	uint64_t used = tenant_usage(t, 0).used_bytes;
	seen.fixed_bytes = used > f.swappable_bytes ? used - f.swappable_bytes : 0;
	seen.has_work = has_work(t, &seen.wanted_bytes);
	/* All have done what was asked or have given it up, and some are in. */
	seen.has_refused = seen.place == RESIDENCE_LEAVING && !f.behind && f.in;
	if (seen.has_refused && !t->terms.swapped_out)
		log_info("tenant '%s': its memory can't leave the card for now", t->terms.name);
	if (f.is_short && !t->was_short &&
	    turns->margin_bytes < t->terms.device[0].card->info.memory_bytes / MARGIN_PART)
		turns->margin_bytes += MARGIN_STEP_BYTES;
	t->was_short = f.is_short;
	residence_see(&turns->residence, t->residence, &seen, now_ns);
}

/* What others are promised or hold is not to be had; nor what the driver is yet to give back. */
static uint64_t capacity_of(struct node *node, struct card *card)
{
	struct promise_card p = node_promised(node, card, NULL);
	uint64_t taken = p.promised_bytes + p.rest_held_bytes + p.granted_bytes + p.kept_bytes +
			 card->foreign_bytes + drain_bytes(card) + card->swap_turns->margin_bytes;
	return taken < card->info.memory_bytes ? card->info.memory_bytes - taken : 0;
}

/* Before any order: what is reserved for who returns is nobody else's from there on. */
static void publish_bound(struct tenant *t)
{
	uint64_t more = residence_may_take(&turns_of(t)->residence, t->residence);
	uint64_t used = tenant_usage(t, 0).used_bytes;
	atomic_store(&t->region.control->swap_bound_bytes,
		     more < UINT64_MAX - used ? used + more : UINT64_MAX);
}

/* True while it moves. */
static bool obey(struct tenant *t)
{
	const struct residence_tenant *r = &turns_of(t)->residence.tenant[t->residence];
	bool is_in = r->is_to_be_in && r->seen.place == RESIDENCE_IN;
	bool was_away = t->is_away;
	swap_set_order(t, r->is_to_be_in ? SWAP_ORDER_IN : SWAP_ORDER_OUT);
	/* Who has no room to return to is let at his calls, which tell him so. */
	t->is_away = !is_in && !r->seen.is_short;
	if (t->is_away != was_away)
		lessee_set_paused(t->device[0].lessee, t->terms.paused || t->is_away);
	return r->seen.place == RESIDENCE_LEAVING || r->seen.place == RESIDENCE_RETURNING ||
	       r->is_to_be_in != (r->seen.place == RESIDENCE_IN);
}

/* Where it is by what its processes say: those of an adopted tenant may be out. */
static void admit(struct tenant *t, uint64_t now_ns)
{
	struct swap_figures f = swap_figures(t);
	if (t->residence >= 0 || t->adopting)
		return;
	t->residence = residence_add(&turns_of(t)->residence,
				     !(f.out || f.moving || t->terms.swapped_out), now_ns);
}

/* How many such tenants are there, and is one moving? */
static unsigned look_at(struct node *node, struct card *card, uint64_t now_ns, bool *ret_is_moving)
{
	struct tenant *t;
	unsigned count = 0;
	TAILQ_FOREACH(t, &node->tenants, link)
	count += is_here(t, card);
	if (!count)
		return 0;
	if (!card->swap_turns) {
		struct residence_config config = residence_default_config();
		card->swap_turns = calloc(1, sizeof(*card->swap_turns));
		if (!card->swap_turns)
			return count;
		residence_init(&card->swap_turns->residence, &config);
	}
	TAILQ_FOREACH(t, &node->tenants, link)
	{
		if (!is_here(t, card))
			continue;
		admit(t, now_ns);
		if (t->residence >= 0)
			see(t, now_ns);
	}
	residence_step(&card->swap_turns->residence, capacity_of(node, card), now_ns);
	TAILQ_FOREACH(t, &node->tenants, link)
	if (is_here(t, card) && t->residence >= 0)
		publish_bound(t);
	TAILQ_FOREACH(t, &node->tenants, link)
	if (is_here(t, card) && t->residence >= 0)
		*ret_is_moving |= obey(t);
	return count;
}

void swap_turns_look(struct node *node)
{
	uint64_t now_ns = clock_now_ns(), every_ns;
	bool is_moving = false;
	unsigned count = 0;
	for (unsigned i = 0; i < node->card_count; i++)
		count += look_at(node, &node->card[i], now_ns, &is_moving);
	every_ns = is_moving ? LOOK_MOVING_NS : LOOK_NS;
	if (count)
		loop_arm(node->swap_timer, every_ns, 0);
}

void swap_turns_due(void *data, uint32_t events)
{
	swap_turns_look(data);
}

void swap_turns_forget(struct tenant *t)
{
	if (t->residence >= 0)
		residence_remove(&turns_of(t)->residence, t->residence);
	t->residence = -1;
}

void swap_turns_free(struct card *card)
{
	free(card->swap_turns);
	card->swap_turns = NULL;
}
