#include "place/score.h"

static double part(double used, double total)
{
	return total > 0 ? used / total : 0;
}

double place_node_score(const struct place_node *node)
{
	double cards = 0, cores = 0, cores_total = 0, bytes = 0, bytes_total = 0;

	for (unsigned i = 0; i < node->card_count; i++) {
		const struct place_card *card = &node->card[i];
		cards += card->slots_used > 0;
		cores += card->cores_used_mpct;
		cores_total += card->cores_total_mpct;
		bytes += (double)card->memory_used_bytes;
		bytes_total += (double)card->memory_total_bytes;
	}
	return 10 * (part(cards, node->card_count) + part(cores, cores_total) +
		     part(bytes, bytes_total));
}

double place_card_score(const struct place_card *card, const struct place_request *request)
{
	struct place_need need = place_need(card, request);

	return 10 * (part(1 + (double)card->slots_used, card->slots_total) +
		     part((double)need.cores_mpct + card->cores_used_mpct, card->cores_total_mpct) +
		     part((double)need.memory_bytes + (double)card->memory_used_bytes,
			  (double)card->memory_total_bytes));
}
