#include "scheduler/gang/pod_gang.h"

#include <string.h>

#define TRIES_MAX 4
#define DOUBLINGS_MAX 4

/* ---- counts of pods by state ---- */

unsigned gang_there(const struct gang_roll *roll)
{
	unsigned there = 0;
	for (unsigned i = 0; i < GANG_STATES; i++)
		there += i == GANG_ABSENT ? 0 : roll->count[i];
	return there;
}

unsigned gang_settled(const struct gang_roll *roll)
{
	return roll->count[GANG_GOES] + roll->count[GANG_BOUND] + roll->count[GANG_EASY];
}

unsigned gang_missing(const struct gang_roll *roll)
{
	unsigned settled = gang_settled(roll);
	return roll->size > settled ? roll->size - settled : 0;
}

bool gang_has_begun(const struct gang_roll *roll)
{
	return roll->count[GANG_GOES] + roll->count[GANG_BOUND] > 0;
}

bool gang_may_begin(const struct gang_roll *roll)
{
	return gang_has_begun(roll) || gang_missing(roll) <= roll->count[GANG_COME];
}

enum gang_verdict gang_judge(const struct gang_roll *roll)
{
	unsigned kept = roll->count[GANG_HELD] + roll->count[GANG_COME];
	if (!roll->size)
		return GANG_LONE;
	if (gang_there(roll) < roll->size)
		return gang_has_begun(roll) ? GANG_SINGLY : GANG_INCOMPLETE;
	return kept >= gang_missing(roll) ? GANG_WHOLE : GANG_JOINTLY;
}

/* ---- room for several pods ---- */

/* Whether a member seated earlier may be in the way of member k. One that is like k cannot: they would only swap. */
static bool may_go_first(const struct gang_trial *trial, const struct gang_seat *order, size_t k)
{
	for (size_t j = 0; j < k; j++)
		if (order[j].is_taken &&
		    !trial->is_like(trial->data, order[j].member, order[k].member))
			return true;
	return false;
}

/*
 * Seats members in this order; returns how many. *ret_first: the first without a seat that another order may help, or `count`.
 */
static size_t seat_all(const struct gang_trial *trial, struct gang_seat *order, size_t count,
		       size_t *ret_first)
{
	size_t seated = 0;
	*ret_first = count;
	for (size_t k = 0; k < count; k++) {
		order[k].is_taken = trial->seat(trial->data, order[k].member);
		seated += order[k].is_taken;
		if (!order[k].is_taken && *ret_first == count && may_go_first(trial, order, k))
			*ret_first = k;
	}
	return seated;
}

static void unseat_all(const struct gang_trial *trial, const struct gang_seat *order, size_t count)
{
	for (size_t k = count; k-- > 0;)
		if (order[k].is_taken)
			trial->unseat(trial->data, order[k].member);
}

static void go_first(struct gang_seat *order, size_t k)
{
	struct gang_seat one = order[k];
	memmove(order + 1, order, k * sizeof(*order));
	order[0] = one;
}

size_t gang_seat(const struct gang_trial *trial, size_t count, size_t needed,
		 struct gang_seat *order)
{
	size_t most = 0, first;
	for (size_t i = 0; i < count; i++)
		order[i] = (struct gang_seat){ .member = i };
	for (unsigned try = 0; try < TRIES_MAX; try++) {
		size_t seated = seat_all(trial, order, count, &first);
		if (seated >= needed)
			return seated;
		unseat_all(trial, order, count);
		most = seated > most ? seated : most;
		if (first == count)
			break;
		go_first(order, first);
	}
	return most;
}

uint64_t gang_pause_ns(unsigned failures, uint64_t hold_ns, uint32_t salt)
{
	unsigned doublings = failures > DOUBLINGS_MAX ? DOUBLINGS_MAX : failures - 1;
	uint64_t pause_ns = hold_ns << doublings;
	/* Knuth's multiplicative hashing (The Art of Computer Programming, 6.4); the upper bits give 0 to 1023. */
	uint32_t drawn = ((salt ^ failures) * UINT32_C(2654435761)) >> 22;
	return pause_ns + pause_ns / 1024 * drawn;
}
