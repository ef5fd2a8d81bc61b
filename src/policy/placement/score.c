#include "policy/placement/score.h"

static double part(double used, double total)
{
	return total > 0 ? used / total : 0;
}

double place_cards_score(const struct place_card *card, unsigned count)
{
	double cards = 0, cores = 0, cores_total = 0, bytes = 0, bytes_total = 0;

	for (unsigned i = 0; i < count; i++) {
		cards += card[i].slots_used > 0;
		cores += card[i].cores_used_mpct;
		cores_total += card[i].cores_total_mpct;
		bytes += (double)card[i].memory_used_bytes;
		bytes_total += (double)card[i].memory_total_bytes;
	}
	return 10 * (part(cards, count) + part(cores, cores_total) + part(bytes, bytes_total));
}

double place_card_score(const struct place_card *card, const struct place_request *request)
{
	static const struct place_weights equal = { 1, 1, 1 };
	const struct place_weights *by = request->has_weights ? &request->weights : &equal;
	struct place_need need = place_need(card, request);

	return 10 * (by->slots * part(1 + (double)card->slots_used, card->slots_total) +
		     by->cores * part((double)need.cores_mpct + card->cores_used_mpct,
				      card->cores_total_mpct) +
		     by->memory * part((double)need.memory_bytes + (double)card->memory_used_bytes,
				       (double)card->memory_total_bytes));
}
