/*
 * The best set of cards, against one found by other means: for each layout, policy and size, in ten
 * thousand random states of the node, every set of cards is tried here by the definitions in
 * evaluate.h, written down once more and without any of its code.
 */
#include "layouts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define STATES 10000

static bool is_free_of_all(const struct place_card *c)
{
	return !c->is_sick && !c->is_cordoned && !c->slots_used && !c->memory_used_bytes &&
	       !c->cores_used_mpct;
}

static bool serves(const struct place_card *c, const struct place_request *r)
{
	bool whole = r->cores_mpct == 100000;
	uint64_t bytes = r->memory == PLACE_MEMORY_ALL ? c->memory_total_bytes : r->memory_bytes;

	if (c->is_sick || c->is_cordoned || c->slots_used >= 10)
		return false;
	if (c->memory_used_bytes + bytes > c->memory_total_bytes ||
	    c->cores_used_mpct + r->cores_mpct > 100000)
		return false;
	return !(whole && c->slots_used) && (r->cores_mpct || c->cores_used_mpct < 100000);
}

static int pair_score(const struct place_node *n, unsigned a, unsigned b)
{
	static const int levels[] = { 0, 10, 20, 30, 40, 50, 60 };

	return levels[n->link[a][b].level] + 100 * n->link[a][b].nvlinks;
}

/* How near its cards are to each other; higher is better. */
static double nearness(const struct place_node *n, unsigned set)
{
	double sum = 0;

	for (unsigned a = 0; a < n->card_count; a++)
		for (unsigned b = a + 1; b < n->card_count; b++)
			if ((set >> a & 1) && (set >> b & 1))
				sum += pair_score(n, a, b);
	return sum;
}

/* Free cards taken, and their links to the free cards that are left behind; lower is better. */
static double torn(const struct place_node *n, unsigned set)
{
	double sum = 0;

	for (unsigned a = 0; a < n->card_count; a++) {
		if (!(set >> a & 1) || !is_free_of_all(&n->card[a]))
			continue;
		sum += 1;
		for (unsigned b = 0; b < n->card_count; b++)
			if (!(set >> b & 1) && is_free_of_all(&n->card[b]))
				sum += pair_score(n, a, b);
	}
	return sum;
}

/* Of a card's free share, in ten thousandths: the part that no request of such a size can use. */
static double stranded(double cores, double memory)
{
	static const double parts[] = { 1250, 2500, 5000, 10000 };
	double sum = 0;

	for (unsigned i = 0; i < 4; i++)
		if (fmin(cores, memory) < parts[i])
			sum += cores + memory;
	return sum;
}

/* How much more is stranded by it, and what is left on each card; lower is better. */
static void wasted(const struct place_node *n, unsigned set, const struct place_request *r,
		   double *ret_lost, double *ret_left)
{
	*ret_lost = *ret_left = 0;
	for (unsigned a = 0; a < n->card_count; a++) {
		const struct place_card *c = &n->card[a];
		double size = (double)c->memory_total_bytes;
		double bytes = r->memory == PLACE_MEMORY_ALL ? size : (double)r->memory_bytes;
		double cores = floor((1e5 - c->cores_used_mpct) / 10 + 0.5);
		double memory = floor((size - (double)c->memory_used_bytes) * 1e4 / size + 0.5);
		double cores_then = floor((1e5 - c->cores_used_mpct - r->cores_mpct) / 10 + 0.5);
		double memory_then = floor(
			(size - (double)c->memory_used_bytes - bytes) * 1e4 / size + 0.5);
		if (!(set >> a & 1))
			continue;
		*ret_lost += stranded(cores_then, memory_then) - stranded(cores, memory);
		*ret_left += cores_then + memory_then;
	}
}

/* HAMi's score of each card, summed. */
static double fullness(const struct place_node *n, unsigned set, const struct place_request *r)
{
	double sum = 0;

	for (unsigned a = 0; a < n->card_count; a++) {
		const struct place_card *c = &n->card[a];
		double bytes = r->memory == PLACE_MEMORY_ALL ? (double)c->memory_total_bytes
							     : (double)r->memory_bytes;
		if (set >> a & 1)
			sum += 10 * ((c->slots_used + 1) / 10.0 +
				     (c->cores_used_mpct + r->cores_mpct) / 1e5 +
				     ((double)c->memory_used_bytes + bytes) /
					     (double)c->memory_total_bytes);
	}
	return sum;
}

#define JUDGED 4
/* Less is better, each entry before the next. */
static void judge(const struct place_node *n, unsigned set, const struct place_request *r,
		  double ret[JUDGED])
{
	switch (r->policy) {
	case PLACE_POLICY_BINPACK:
		ret[0] = -fullness(n, set, r);
		ret[1] = torn(n, set);
		ret[2] = ret[3] = 0;
		break;
	case PLACE_POLICY_SPREAD:
		ret[0] = fullness(n, set, r);
		ret[1] = torn(n, set);
		ret[2] = ret[3] = 0;
		break;
	default:
		ret[0] = -nearness(n, set);
		wasted(n, set, r, &ret[1], &ret[2]);
		ret[3] = torn(n, set);
		break;
	}
}

/* Scores are fractions: smaller differences than this count as equal. */
static int compare(const double a[JUDGED], const double b[JUDGED])
{
	for (unsigned i = 0; i < JUDGED; i++)
		if (fabs(a[i] - b[i]) > 1e-5)
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static struct place_request draw(unsigned count, uint64_t *random)
{
	struct place_request r = { .count = count,
				   .policy = (enum place_policy)random_between(random, 0, 3) };

	if (random_between(random, 0, 1)) {
		r.memory = PLACE_MEMORY_ALL;
		r.cores_mpct = 100000;
	} else {
		r.memory_bytes = random_between(random, 0, 24) * GIB;
		r.cores_mpct = (uint32_t)random_between(random, 0, 10) * 5000;
	}
	return r;
}

static void check(const struct place_node *node, const struct place_request *request,
		  uint64_t *placed)
{
	struct place_choice choice;
	unsigned able = 0, chosen = 0, must = 0;
	double best[JUDGED] = { INFINITY }, ours[JUDGED];
	int r = place_choose(node, request, &choice);

	for (unsigned i = 0; i < node->card_count; i++)
		if (serves(&node->card[i], request))
			able |= 1u << i;
	for (unsigned i = 0; i < node->card_count && request->must_uuid.count; i++)
		if (!strcmp(node->card[i].uuid, *request->must_uuid.word))
			must = 1u << i;
	assert_int_equal(r, (unsigned)__builtin_popcount(able) >= request->count && !(must & ~able)
				    ? 0
				    : -ENOSPC);
	if (r < 0)
		return;
	for (unsigned set = 1; set < 1u << node->card_count; set++) {
		double cost[JUDGED];
		if (set & ~able || must & ~set ||
		    (unsigned)__builtin_popcount(set) != request->count)
			continue;
		judge(node, set, request, cost);
		if (compare(cost, best) < 0)
			memcpy(best, cost, sizeof(best));
	}
	assert_int_equal(choice.count, request->count);
	for (unsigned i = 0; i < choice.count; i++)
		chosen |= 1u << choice.card[i];
	assert_int_equal(__builtin_popcount(chosen), request->count);
	assert_int_equal(chosen & ~able, 0);
	assert_int_equal(must & ~chosen, 0);
	assert_true(choice.is_best);
	judge(node, chosen, request, ours);
	assert_int_equal(compare(ours, best), 0);
	(*placed)++;
}

static void best_in_layout(const char *name)
{
	static const unsigned counts[] = { 1, 2, 3, 4, 8 };
	struct place_node node = layout_node(name);
	uint64_t random = 0x1234, placed = 0;

	assert_int_equal(node.card_count, 8);
	/* The node with nothing in use, and then the random ones. */
	for (unsigned s = 0; s < STATES; s++) {
		if (s)
			layout_disturb(&node, &random);
		for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
			struct place_request request = draw(counts[i], &random);
			const char *const must = node.card[random_between(&random, 0, 7)].uuid;
			/* A card that has to be among them, now and then. */
			request.must_uuid.word = &must;
			request.must_uuid.count = random_between(&random, 0, 3) == 0;
			check(&node, &request, &placed);
		}
	}
	print_message("%s: %d states, %llu sets placed, all the best\n", name, STATES,
		      (unsigned long long)placed);
	assert_true(placed > STATES);
}

static void dgx_1v(void **state)
{
	best_in_layout("dgx-1v");
}

static void dgx_a100(void **state)
{
	best_in_layout("dgx-a100");
}

static void pcie(void **state)
{
	best_in_layout("pcie");
}

static void mixed(void **state)
{
	best_in_layout("mixed");
}

/* The choice of people who know these machines, among empty ones. */
static void known_answers(void **state)
{
	static const struct {
		const char *layout;
		unsigned count, set;
	} rows[] = {
		{ "dgx-1v", 1, 0x01 },   { "dgx-1v", 2, 0x0c }, /* two links, and a switch */
		{ "dgx-1v", 4, 0x0f },   { "dgx-1v", 8, 0xff }, { "pcie", 2, 0x03 },
		{ "pcie", 4, 0x0f },     { "mixed", 2, 0x03 },  { "mixed", 4, 0x0f },
		{ "dgx-a100", 2, 0x03 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct place_node node = layout_node(rows[i].layout);
		struct place_request request = { .count = rows[i].count,
						 .memory = PLACE_MEMORY_ALL,
						 .cores_mpct = 100000 };
		struct place_choice choice;
		unsigned set = 0;
		assert_int_equal(place_choose(&node, &request, &choice), 0);
		for (unsigned c = 0; c < choice.count; c++)
			set |= 1u << choice.card[c];
		assert_int_equal(set, rows[i].set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(dgx_1v), cmocka_unit_test(dgx_a100),
					    cmocka_unit_test(pcie), cmocka_unit_test(mixed),
					    cmocka_unit_test(known_answers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
