/*
 * Fragmentation over a simulated day, ours against gpu-manager's evaluators, on the same traces: every
 * layout, at three loads, forty days each.
 */
#include "day.h"

#define DAYS 40

static const unsigned loads_pct[] = { 60, 85, 110 };

struct sum {
	double unusable, left, links, minutes;
	unsigned turned_away;
};

static void add(struct sum *sum, struct day_result day)
{
	sum->unusable += day.unusable_cards / DAYS;
	sum->left += day.left_cards / DAYS;
	sum->links += day.links / DAYS;
	sum->minutes += day.placed_card_minutes / DAYS;
	sum->turned_away += day.turned_away;
}

static void days_in(const char *name)
{
	static struct day_trace trace;
	struct place_node node = layout_node(name);

	for (unsigned l = 0; l < sizeof(loads_pct) / sizeof(*loads_pct); l++) {
		struct sum ours = { 0 }, rival = { 0 };
		for (unsigned d = 0; d < DAYS; d++) {
			day_draw(&trace, &node, loads_pct[l], 1000 * l + d);
			add(&ours, day_run(&trace, node, day_ours));
			add(&rival, day_run(&trace, node, day_rival));
		}
		print_message(
			"%-8s load %3u %%: unusable %.4f of %.3f cards left (%.2f %%), gpu-manager "
			"%.4f of %.3f (%.2f %%); links %.0f, %.0f; turned away %u, %u; "
			"card-minutes %.0f, %.0f\n",
			name, loads_pct[l], ours.unusable, ours.left,
			100 * ours.unusable / ours.left, rival.unusable, rival.left,
			100 * rival.unusable / rival.left, ours.links, rival.links,
			ours.turned_away, rival.turned_away, ours.minutes, rival.minutes);
		assert_true(ours.unusable < rival.unusable);
	}
}

static void dgx_1v(void **state)
{
	days_in("dgx-1v");
}

static void dgx_a100(void **state)
{
	days_in("dgx-a100");
}

static void pcie(void **state)
{
	days_in("pcie");
}

static void mixed(void **state)
{
	days_in("mixed");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(dgx_1v), cmocka_unit_test(dgx_a100),
					    cmocka_unit_test(pcie), cmocka_unit_test(mixed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
