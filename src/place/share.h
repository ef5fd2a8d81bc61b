/*
 * Parts of cards: which card a part fits best.
 *
 * What is left of a card is of use to those whose parts fit into it, in compute and in memory. A card
 * with time left and no memory, or the other way round, serves nobody; neither does a remainder smaller
 * than anybody asks for. So the cost of a place is, first, how much that could still be given out
 * becomes useless by it, over a ladder of usual parts of a card (an eighth, a quarter, a half, all);
 * after that, how much stays free there: the fuller card is taken. (The first is the measure of
 * "Beware of Fragmentation", USENIX ATC 2023, with a ladder for the mix of tasks, which nobody knows.)
 */
#ifndef ALLOT_PLACE_SHARE_H
#define ALLOT_PLACE_SHARE_H

#include "place/request.h"

/* What is left of a card, in parts of its all. */
#define PLACE_REST_WHOLE INT64_C(10000)
struct place_rest {
	int64_t cores, memory; /* 0 to PLACE_REST_WHOLE */
};

struct place_rest place_rest_now(const struct place_card *card);
/* With the request on it, which must fit. */
struct place_rest place_rest_after(const struct place_card *card,
				   const struct place_request *request);

/* Less is better; for the evaluator "share". The request must fit. */
int64_t place_share_cost(const struct place_card *card, const struct place_request *request);

#endif
