#include "scheduler/gang/pod_gang.h"

#include <string.h>

#define TRIES_MAX 4
#define DOUBLINGS_MAX 4

unsigned gang_count_present(const struct gang_counts *counts)
{
	unsigned there = 0;
	for (unsigned i = 0; i < GANG_STATES; i++)
		there += i == GANG_ABSENT ? 0 : counts->count[i];
	return there;
}

unsigned gang_count_committed(const struct gang_counts *counts)
{
	return counts->count[GANG_BINDING] + counts->count[GANG_BOUND] +
	       counts->count[GANG_NEEDS_NO_CARDS];
}

unsigned gang_count_to_place(const struct gang_counts *counts)
{
	unsigned settled = gang_count_committed(counts);
	return counts->size > settled ? counts->size - settled : 0;
}

bool gang_has_begun(const struct gang_counts *counts)
{
	return counts->count[GANG_BINDING] + counts->count[GANG_BOUND] > 0;
}

bool gang_may_bind(const struct gang_counts *counts)
{
	return gang_has_begun(counts) ||
	       gang_count_to_place(counts) <= counts->count[GANG_WAITS_TO_BIND];
}

enum gang_verdict gang_judge(const struct gang_counts *counts)
{
	unsigned kept = counts->count[GANG_RESERVED] + counts->count[GANG_WAITS_TO_BIND];
	if (!counts->size)
		return GANG_NONE;
	if (gang_count_present(counts) < counts->size)
		return gang_has_begun(counts) ? GANG_REPLACE_PODS : GANG_INCOMPLETE;
	return kept >= gang_count_to_place(counts) ? GANG_COMPLETE : GANG_PLACE_TOGETHER;
}

/* Whether member k might fit if placed first, because an unlike member before it may have taken its room. */
static bool may_move_first(const struct gang_trial *trial, const struct gang_slot *order, size_t k)
{
	for (size_t j = 0; j < k; j++)
		if (order[j].is_placed &&
		    !trial->is_like(trial->data, order[j].member, order[k].member))
			return true;
	return false;
}

/* Returns how many found room. *ret_first: index of the first without room that might fit in another order, or `count`. */
static size_t place_all(const struct gang_trial *trial, struct gang_slot *order, size_t count,
			size_t *ret_first)
{
	size_t placed = 0;
	*ret_first = count;
	for (size_t k = 0; k < count; k++) {
		order[k].is_placed = trial->place(trial->data, order[k].member);
		placed += order[k].is_placed;
		if (!order[k].is_placed && *ret_first == count && may_move_first(trial, order, k))
			*ret_first = k;
	}
	return placed;
}

static void unplace_all(const struct gang_trial *trial, const struct gang_slot *order, size_t count)
{
	for (size_t k = count; k-- > 0;)
		if (order[k].is_placed)
			trial->unplace(trial->data, order[k].member);
}

static void move_first(struct gang_slot *order, size_t k)
{
	struct gang_slot one = order[k];
	memmove(order + 1, order, k * sizeof(*order));
	order[0] = one;
}

size_t gang_place(const struct gang_trial *trial, size_t count, size_t needed,
		  struct gang_slot *order)
{
	size_t most = 0, first;
	for (size_t i = 0; i < count; i++)
		order[i] = (struct gang_slot){ .member = i };
	for (unsigned try = 0; try < TRIES_MAX; try++) {
		size_t placed = place_all(trial, order, count, &first);
		if (placed >= needed)
			return placed;
		unplace_all(trial, order, count);
		most = placed > most ? placed : most;
		if (first == count)
			break;
		move_first(order, first);
	}
	return most;
}

uint64_t gang_backoff_ns(unsigned failures, uint64_t hold_ns, uint32_t salt)
{
	unsigned doublings = failures > DOUBLINGS_MAX ? DOUBLINGS_MAX : failures - 1;
	uint64_t pause_ns = hold_ns << doublings;
	/* Knuth's multiplicative hashing (The Art of Computer Programming, 6.4); the upper bits give 0 to 1023. */
	uint32_t drawn = ((salt ^ failures) * UINT32_C(2654435761)) >> 22;
	return pause_ns + pause_ns / 1024 * drawn;
}
