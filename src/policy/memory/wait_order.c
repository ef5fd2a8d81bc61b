#include "policy/memory/wait_order.h"

bool order_is_overdue(const struct order_key *k, uint64_t now_ns, const struct order_bounds *bounds)
{
	uint64_t waited_ns = now_ns > k->since_ns ? now_ns - k->since_ns : 0;

	return waited_ns >= bounds->patience_ns || k->passes >= bounds->passes_most;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_arrivals(const struct order_key *a, const struct order_key *b)
{
	int by_arrival = compare_numbers(a->arrival, b->arrival);

	return by_arrival ? by_arrival : compare_numbers(a->id, b->id);
}

int order_compare(const struct order_key *a, const struct order_key *b, uint64_t now_ns,
		  const struct order_bounds *bounds)
{
	bool a_is_overdue = order_is_overdue(a, now_ns, bounds);
	bool b_is_overdue = order_is_overdue(b, now_ns, bounds);

	if (a_is_overdue != b_is_overdue)
		return a_is_overdue ? -1 : 1;
	if (!a_is_overdue && (a->use_ns < b->use_ns || a->use_ns > b->use_ns))
		return a->use_ns < b->use_ns ? -1 : 1;
	return compare_arrivals(a, b);
}
