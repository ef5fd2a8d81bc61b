/*
 * Counts requests, and the cluster's room for them, for the policy "fragmentation" (policy/placement/room.h). A kind is a class
 * of equal requests.
 *
 *     room      per node: how many requests of each kind the node's cards would serve; counted again when the charges to
 *               the cards change, and for each new kind
 *     total[k]  the room for requests of kind k on all nodes; the price of the kind is derived from it
 *
 * Counting requests is cheap; rooms are counted only when a pod is placed by this policy.
 */
#include <stdlib.h>
#include <string.h>

#include "scheduler/model/model_inside.h"
#include "scheduler/request/workload_histogram.h"

/* Many cards are in equal states. So place_card_fits()'s counts are cached, for this many states. */
#define MEMO_CARDS 4096

struct memo_card {
	/* model_room.generation when this entry was made; if it has changed since, the entry is invalid */
	uint64_t generation;
	struct place_card card; /* the fields that determine the counts; all others are zero */
	struct place_fits fits;
};

struct model_room {
	struct histogram histogram;
	uint64_t new_kinds; /* bit k is set if kind k has not been counted on any node yet */
	uint64_t total[PLACE_KINDS_MAX];
	/*
	 * Incremented when a card type's string was freed: another string may get its address, so all entries of `memo` are
	 * invalid. Begins with 1, because 0 marks unused entries.
	 */
	uint64_t generation;
	struct memo_card *memo; /* MEMO_CARDS entries; owned; NULL before the first use */
};
_Static_assert(PLACE_KINDS_MAX <= 64, "a bit for each kind");

void model_count_request(struct model *m, const struct request *request)
{
	/* Opportunistic requests do not count: they take no guaranteed compute from others. */
	if (request->is_opportunistic)
		return;
	if (!m->room && request->count) {
		m->room = calloc(1, sizeof(*m->room));
		if (m->room)
			m->room->generation = 1;
	}
	for (size_t i = 0; m->room && i < request->count; i++) {
		struct place_request place = request->part[i].place;
		unsigned kind;
		place.use_type = request->use_type;
		place.nouse_type = request->nouse_type;
		if (!request->part[i].is_init &&
		    histogram_count(&m->room->histogram, &place, &kind) == 1)
			m->room->new_kinds |= UINT64_C(1) << kind;
	}
}

void model_room_free(struct model *m)
{
	if (m->room) {
		histogram_free(&m->room->histogram);
		free(m->room->memo);
	}
	free(m->room);
	m->room = NULL;
}

/* Returns the fields of the card that its room depends on; all other fields are zero. */
static struct place_card state_of(const struct place_card *card)
{
	struct place_card state;
	/* States are compared with memcmp(), so clear the padding too. */
	memset(&state, 0, sizeof(state));
	state.type = card->type;
	state.memory_total_bytes = card->memory_total_bytes;
	state.memory_reserved_bytes = card->memory_reserved_bytes;
	state.memory_used_bytes = card->memory_used_bytes;
	state.cores_total_mpct = card->cores_total_mpct;
	state.cores_reserved_mpct = card->cores_reserved_mpct;
	state.cores_used_mpct = card->cores_used_mpct;
	state.slots_total = card->slots_total;
	state.slots_used = card->slots_used;
	state.is_instance = card->is_instance;
	state.is_sick = card->is_sick;
	state.is_cordoned = card->is_cordoned;
	return state;
}

/* Returns how many requests of each kind the card would serve; valid until the next call. */
static const struct place_fits *fits_of(struct model_room *room, const struct place_card *card)
{
	const struct place_card state = state_of(card);
	uint64_t slot = (uint64_t)(uintptr_t)state.type >> 4;
	slot = slot * 31 + (state.memory_total_bytes >> 20);
	slot = slot * 31 + (state.memory_used_bytes >> 20);
	slot = slot * 31 + state.cores_used_mpct / 1000;
	slot = (slot * 31 + state.slots_used) * UINT64_C(0x9e3779b97f4a7c15);
	struct memo_card *memo = &room->memo[(slot >> 32) % MEMO_CARDS];
	if (memo->generation != room->generation || memcmp(&memo->card, &state, sizeof(state)) != 0) {
		memo->generation = room->generation;
		memo->card = state;
		place_card_fits(&room->histogram.kinds, &state, &memo->fits);
	}
	return &memo->fits;
}

static void tell_memo_of_kind(struct model_room *room, unsigned kind)
{
	for (unsigned i = 0; i < MEMO_CARDS; i++)
		if (room->memo[i].generation == room->generation)
			room->memo[i].fits.of[kind] = place_kind_fits(
				&room->memo[i].card, &room->histogram.kinds.kind[kind].request);
}

struct counting {
	struct model_room *room;
	bool is_out_of_memory;
};

static struct place_tally tally_of(struct model_room *room, const struct inventory *inventory)
{
	struct place_tally tally = { 0 };
	for (unsigned i = 0; i < inventory->count; i++)
		place_tally_add(&room->histogram.kinds, fits_of(room, &inventory->card[i]), &tally);
	return tally;
}

static void count_kind(const struct place_histogram *kinds, unsigned k,
		       const struct inventory *inventory, struct place_tally *tally)
{
	tally->shares[k] = tally->cards[k] = 0;
	for (unsigned i = 0; i < inventory->count; i++) {
		uint16_t fits = place_kind_fits(&inventory->card[i], &kinds->kind[k].request);
		tally->shares[k] += fits;
		tally->cards[k] = (uint16_t)(tally->cards[k] + (fits > 0));
	}
}

/* If the charges to the cards have changed, counts all kinds, otherwise only new ones. False if memory runs out. */
static bool count_room(struct model_room *room, struct model_node *node)
{
	const struct place_histogram *kinds = &room->histogram.kinds;
	bool is_first = !node->room;
	if (is_first && !(node->room = calloc(1, sizeof(*node->room))))
		return false;
	const struct place_tally before = *node->room;
	if (is_first || node->is_room_stale)
		*node->room = tally_of(room, &node->inventory);
	else
		for (uint64_t left = room->new_kinds; left; left &= left - 1)
			count_kind(kinds, (unsigned)__builtin_ctzll(left), &node->inventory,
				   node->room);
	for (unsigned k = 0; k < kinds->count; k++)
		room->total[k] += (uint64_t)place_room(kinds, node->room, k) -
				  (room->new_kinds >> k & 1 ? 0 : place_room(kinds, &before, k));
	node->is_room_stale = false;
	return true;
}

static void count_node(void *data, void *thing)
{
	struct counting *c = data;
	struct model_node *node = thing;
	bool is_old = node->is_room_stale || !node->room || c->room->new_kinds;
	if (node->inventory.count && is_old && !count_room(c->room, node))
		c->is_out_of_memory = true;
}

const struct place_histogram *model_histogram(struct model *m)
{
	struct model_room *room = m->room;
	struct counting counting = { .room = room };
	if (room && !room->memo)
		room->memo = calloc(MEMO_CARDS, sizeof(*room->memo));
	if (!room || !room->memo)
		return NULL;
	for (unsigned k = 0; k < room->histogram.kinds.count; k++)
		if (room->new_kinds >> k & 1) {
			room->total[k] = 0;
			tell_memo_of_kind(room, k);
		}
	string_map_each(&m->nodes, count_node, &counting);
	room->new_kinds = 0;
	/* If memory ran out, the next call counts the nodes that are still uncounted. */
	if (counting.is_out_of_memory)
		return NULL;
	histogram_price(&room->histogram, room->total);
	return &room->histogram.kinds;
}

void model_room_forget(struct model *m, struct model_node *node)
{
	struct model_room *room = m->room;
	for (unsigned k = 0; room && node->room && k < room->histogram.kinds.count; k++)
		if (!(room->new_kinds >> k & 1))
			room->total[k] -= place_room(&room->histogram.kinds, node->room, k);
	if (node->inventory.count)
		model_room_strings_freed(m);
	free(node->room);
	node->room = NULL;
}

void model_room_strings_freed(struct model *m)
{
	if (m->room)
		m->room->generation++;
}

/* The cards of a node while shares are placed one after the other. */
struct trial {
	struct model *model;
	const struct inventory *inventory;
	const struct place_card *card; /* the cards with the shares placed so far */
	/* how many requests of each kind the cards in `card` would serve */
	const struct place_tally *tally;
	double loss; /* value of the room that the shares placed so far take */
};

static bool is_same_state(const struct place_card *a, const struct place_card *b)
{
	return a->type == b->type && a->memory_used_bytes == b->memory_used_bytes &&
	       a->cores_used_mpct == b->cores_used_mpct && a->slots_used == b->slots_used &&
	       a->memory_total_bytes == b->memory_total_bytes &&
	       a->cores_total_mpct == b->cores_total_mpct && a->slots_total == b->slots_total;
}

/* Finds the card in `among` (a bit per card) where the share takes the least valuable room. False if no card serves it. */
static bool find_cheapest_card(struct trial *l, const struct place_request *share, uint64_t among,
			       unsigned *ret, double *ret_loss)
{
	struct model_room *room = l->model->room;
	bool found = false;
	for (unsigned i = 0; i < l->inventory->count; i++) {
		const struct place_card *card = &l->card[i];
		if (!(among >> i & 1) || (found && is_same_state(card, &l->card[*ret])) ||
		    fit_check_card(&l->model->fit, l->inventory, l->card, i, share) != PLACE_FITS)
			continue;
		const struct place_card with = place_with_share(card, share);
		const struct place_fits before = *fits_of(room, card);
		double loss = place_card_loss(&room->histogram.kinds, l->tally, &before,
					      fits_of(room, &with));
		if (found && loss >= *ret_loss)
			continue;
		found = true;
		*ret_loss = loss;
		*ret = i;
	}
	return found;
}

/*
 * Places one part's shares on different cards, and adds their loss to l->loss. False if the cards do not suffice. `card` and
 * `tally` are l->card and l->tally, writable.
 */
static bool place_part(struct trial *l, const struct place_request *share, struct place_card *card,
		       struct place_tally *tally)
{
	struct model_room *room = l->model->room;
	uint64_t among = ~UINT64_C(0);
	for (unsigned n = 0; n < share->count; n++) {
		unsigned i = 0;
		double loss = 0;
		if (!find_cheapest_card(l, share, among, &i, &loss))
			return false;
		const struct place_fits before = *fits_of(room, &card[i]);
		card[i] = place_with_share(&card[i], share);
		place_tally_change(&room->histogram.kinds, &before, fits_of(room, &card[i]), tally);
		l->loss += loss;
		among &= ~(UINT64_C(1) << i);
	}
	return true;
}

static bool place_all_parts(struct trial *l, const struct request *request)
{
	struct place_card *card = l->model->fit.card;
	struct place_tally tally = *l->tally;
	struct trial own = { l->model, l->inventory, card, &tally, 0 };
	memcpy(card, l->inventory->card, l->inventory->count * sizeof(*card));
	bool fits = true;
	for (size_t p = 0; fits && p < request->count; p++)
		if (!request->part[p].is_init)
			fits = place_part(&own, &request->part[p].place, card, &tally);
	l->loss = own.loss;
	return fits;
}

double model_room_loss(struct model *m, const struct inventory *inventory,
		       const struct place_tally *counted)
{
	static const struct place_tally none;
	const struct request *request = m->fit.request;
	const struct place_tally anew = counted ? none : tally_of(m->room, inventory);
	struct trial l = { .model = m,
			   .inventory = inventory,
			   .card = inventory->card,
			   .tally = counted ? counted : &anew };
	unsigned i = 0;
	/* A request for one share needs no copy of the cards. */
	bool is_single_share = request->count == 1 && request->part[0].place.count == 1;
	bool fits = is_single_share ? find_cheapest_card(&l, &request->part[0].place, ~UINT64_C(0),
							 &i, &l.loss)
				    : place_all_parts(&l, request);
	return fits ? l.loss : MODEL_ROOM_ALL;
}
