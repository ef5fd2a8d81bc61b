#include "policy/placement/room.h"

/* A need of 0 gives the largest result that callers can store. */
static uint64_t times(uint64_t left, uint64_t need)
{
	return need ? left / need : UINT16_MAX;
}

uint16_t place_kind_fits(const struct place_card *card, const struct place_request *kind)
{
	if (place_check_card(card, kind) != PLACE_FITS)
		return 0;
	if (place_needs_whole_card(kind))
		return 1;
	struct place_need need = place_need(card, kind);
	uint64_t most = card->slots_total - card->slots_used;
	uint64_t cores = times(place_cores_left(card), need.cores_mpct);
	uint64_t memory = times(place_memory_left(card), need.memory_bytes);
	most = cores < most ? cores : most;
	most = memory < most ? memory : most;
	return (uint16_t)(most < UINT16_MAX ? most : UINT16_MAX);
}

void place_card_fits(const struct place_histogram *histogram, const struct place_card *card,
		     struct place_fits *ret)
{
	for (unsigned k = 0; k < histogram->count; k++)
		ret->of[k] = place_kind_fits(card, &histogram->kind[k].request);
}

void place_tally_add(const struct place_histogram *histogram, const struct place_fits *card,
		     struct place_tally *tally)
{
	for (unsigned k = 0; k < histogram->count; k++) {
		tally->shares[k] += card->of[k];
		tally->cards[k] = (uint16_t)(tally->cards[k] + (card->of[k] > 0));
	}
}

void place_tally_change(const struct place_histogram *histogram, const struct place_fits *before,
			const struct place_fits *now, struct place_tally *tally)
{
	for (unsigned k = 0; k < histogram->count; k++) {
		tally->shares[k] += (uint32_t)now->of[k] - before->of[k];
		tally->cards[k] = (uint16_t)(tally->cards[k] + (now->of[k] > 0) -
					     (before->of[k] > 0));
	}
}

double place_card_loss(const struct place_histogram *histogram, const struct place_tally *all,
		       const struct place_fits *before, const struct place_fits *now)
{
	double loss = 0;
	for (unsigned k = 0; k < histogram->count; k++) {
		unsigned count = histogram->kind[k].request.count;
		if (before->of[k] == now->of[k])
			continue;
		if (count == 1) {
			loss += histogram->kind[k].price * ((double)before->of[k] - now->of[k]);
			continue;
		}
		unsigned cards = all->cards[k] + (now->of[k] > 0) - (before->of[k] > 0);
		uint32_t shares = all->shares[k] + now->of[k] - before->of[k];
		uint32_t room = cards < count ? 0 : shares / count;
		loss += histogram->kind[k].price * ((double)place_room(histogram, all, k) - room);
	}
	return loss;
}

struct place_card place_with_share(const struct place_card *card,
				   const struct place_request *request)
{
	struct place_need need = place_need(card, request);
	struct place_card with = *card;
	with.slots_used++;
	with.memory_used_bytes += need.memory_bytes;
	with.cores_used_mpct += need.cores_mpct;
	return with;
}

void place_room_losses(const struct place_histogram *histogram, const struct place_node *node,
		       const struct place_request *request, double ret[PLACE_MAX_CARDS])
{
	struct place_fits fits[PLACE_MAX_CARDS], with_fits;
	struct place_tally all = { 0 };
	for (unsigned i = 0; i < node->card_count; i++) {
		place_card_fits(histogram, &node->card[i], &fits[i]);
		place_tally_add(histogram, &fits[i], &all);
	}
	for (unsigned i = 0; i < node->card_count; i++) {
		struct place_card with = place_with_share(&node->card[i], request);
		place_card_fits(histogram, &with, &with_fits);
		ret[i] = place_card_loss(histogram, &all, &fits[i], &with_fits);
	}
}
