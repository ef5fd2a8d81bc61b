#include "place/share.h"

/* The usual parts of a card. */
static const int64_t ladder[] = { PLACE_REST_WHOLE / 8, PLACE_REST_WHOLE / 4, PLACE_REST_WHOLE / 2,
				  PLACE_REST_WHOLE };
#define STEPS ((int64_t)(sizeof(ladder) / sizeof(ladder[0])))

static int64_t part(uint64_t left, uint64_t total)
{
	return total ? (int64_t)((double)left * (double)PLACE_REST_WHOLE / (double)total + 0.5) : 0;
}

static struct place_rest rest(const struct place_card *card, uint64_t cores_left,
			      uint64_t memory_left)
{
	return (struct place_rest){ .cores = part(cores_left, card->cores_total_mpct),
				    .memory = part(memory_left, card->memory_total_bytes) };
}

struct place_rest place_rest_now(const struct place_card *card)
{
	return rest(card, place_cores_left(card), place_memory_left(card));
}

struct place_rest place_rest_after(const struct place_card *card,
				   const struct place_request *request)
{
	struct place_need need = place_need(card, request);
	uint32_t cores = place_cores_left(card);
	uint64_t memory = place_memory_left(card);

	return rest(card, need.cores_mpct < cores ? cores - need.cores_mpct : 0,
		    need.memory_bytes < memory ? memory - need.memory_bytes : 0);
}

/* Both of compute and memory that no part of each step can have, summed over the steps. */
static int64_t stranded(struct place_rest left)
{
	int64_t scarcer = left.cores < left.memory ? left.cores : left.memory, sum = 0;

	for (int64_t i = 0; i < STEPS; i++)
		if (scarcer < ladder[i])
			sum += left.cores + left.memory;
	return sum;
}

int64_t place_share_cost(const struct place_card *card, const struct place_request *request)
{
	struct place_rest now = place_rest_now(card), after = place_rest_after(card, request);
	int64_t lost = stranded(after) - stranded(now);

	/* The second part is below 2 * PLACE_REST_WHOLE + 1: it never outweighs the first. */
	return lost * (2 * PLACE_REST_WHOLE + 1) + after.cores + after.memory;
}
