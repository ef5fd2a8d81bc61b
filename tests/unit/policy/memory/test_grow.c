/*
 * Tenants that hold and grow: each allocates in steps up to its quota, works, and frees it all. Where
 * each step waits for free bytes by itself ("naive"), several hold a part and wait for each other's for
 * ever. Admitted, each ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/memory/grant.h"
#include "random.h"

#define SCENES 1000
#define MOST 6
#define CARD 100

struct grower {
	uint64_t quota, held;
	bool is_admitted, is_done;
};

static unsigned draw(uint64_t *random, struct grower *growers)
{
	unsigned count = (unsigned)random_between(random, 3, MOST);

	for (unsigned i = 0; i < count; i++)
		growers[i] = (struct grower){ .quota = random_between(random, CARD / 2, CARD) };
	return count;
}

/* Grants a request of a tenant without memory its whole quota, or nothing. */
static void admit(struct grower *growers, unsigned count, uint64_t now)
{
	struct grant_card card = { .size_bytes = CARD };
	struct grant_request list[MOST];
	struct order_bounds bounds = { .patience_ns = ORDER_PATIENCE_NS, .passes_most = 3 };
	size_t n = 0;

	for (unsigned i = 0; i < count; i++) {
		struct grower *g = &growers[i];
		if (g->is_done)
			continue;
		if (g->is_admitted)
			card.taken_bytes += g->quota;
		else
			list[n++] = (struct grant_request){
				.key = { .arrival = i, .id = i },
				.need_count = 1,
				.need = { { .bytes = g->quota } },
				.owner = g,
			};
	}
	grant_decide(&card, 1, list, n, now, &bounds);
	for (size_t i = 0; i < n; i++)
		if (list[i].verdict == GRANT_GRANTED)
			((struct grower *)list[i].owner)->is_admitted = true;
}

/* One step of one of them. True: it could do it. */
static bool step(struct grower *g, uint64_t bytes, uint64_t *free)
{
	if (g->held == g->quota) {
		*free += g->held;
		g->held = 0;
		g->is_done = true;
		return true;
	}
	if (bytes > g->quota - g->held)
		bytes = g->quota - g->held;
	if (bytes > *free)
		return false;
	g->held += bytes;
	*free -= bytes;
	return true;
}

/* True: all came to their end. */
static bool run(uint64_t seed, bool is_naive)
{
	uint64_t random = seed, free = CARD;
	struct grower growers[MOST];
	unsigned count = draw(&random, growers), done = 0;

	for (uint64_t now = 1; done < count; now++) {
		bool moved = false;
		unsigned first = (unsigned)random_between(&random, 0, count - 1);
		uint64_t bytes = random_between(&random, 5, 30);

		if (!is_naive)
			admit(growers, count, now);
		for (unsigned n = 0; n < count && !moved; n++) {
			struct grower *g = &growers[(first + n) % count];
			if (!g->is_done && (is_naive || g->is_admitted))
				moved = step(g, bytes, &free);
			done += moved && g->is_done;
		}
		/* A smaller step may fit yet. */
		for (unsigned i = 0; i < count && !moved; i++)
			if (!growers[i].is_done && (is_naive || growers[i].is_admitted))
				moved = step(&growers[i], 5, &free);
		if (!moved)
			return false;
	}
	return true;
}

static void test_all_end_that_would_deadlock(void **state)
{
	unsigned stuck = 0;

	for (uint64_t seed = 1; seed <= SCENES; seed++) {
		stuck += !run(seed, true);
		if (!run(seed, false))
			fail_msg("seed %llu: somebody waits for ever", (unsigned long long)seed);
	}
	print_message("%d scenes: a naive wait ends in %u, admission in all\n", SCENES,
		      SCENES - stuck);
	assert_true(stuck > SCENES / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_end_that_would_deadlock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
