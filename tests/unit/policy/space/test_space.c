/*
 * Members of one space group on the simulated GPU, where members with work run at the same time: shares of SM time beside the
 * requests, and when a member is held.
 */
#include <math.h>
#include <stdio.h>

#include "policy/space/space.h"
#include "../lease/rules.h"

#define GROUP 7
#define MOST 8

struct seat {
	double cores, limit;
	struct gpu_model_load load;
	int priority;
	double got_pct;  /* of the card's SM-time */
	double work_pct; /* of the time, as work alone */
	double held_pct; /* of the time */
	int index;
};

static struct gpu_model *table_new(const struct gpu_model_config *config, struct seat *seats,
				   int count)
{
	struct gpu_model *m = gpu_model_new(config);

	assert_in_range(count, 1, MOST);
	for (int i = 0; i < count; i++) {
		struct seat *s = &seats[i];

		s->index = gpu_model_add(
			m, (struct arbiter_share){ s->cores, s->limit, s->priority }, &resting);
		gpu_model_set_group(m, s->index, GROUP, s->limit);
	}
	return m;
}

static void begin(struct gpu_model *m, const struct seat *seat)
{
	gpu_model_set_load(m, seat->index, &seat->load);
}

static void end(struct gpu_model *m, const struct seat *seat)
{
	gpu_model_set_load(m, seat->index, &resting);
}

/* Each works alone for a while, one after the other, so that its speed is known; then all do. */
static struct gpu_model *known_table(const struct gpu_model_config *config, struct seat *seats,
				     int count)
{
	struct gpu_model *m = table_new(config, seats, count);

	for (int i = 0; i < count; i++) {
		begin(m, &seats[i]);
		gpu_model_run(m, 1500 * MS);
		end(m, &seats[i]);
		gpu_model_run(m, 100 * MS);
		assert_true(arbiter_pace(gpu_model_arbiter(m), seats[i].index).is_known);
	}
	for (int i = 0; i < count; i++)
		begin(m, &seats[i]);
	return m;
}

/* Runs for this long, and writes the results; returns the sum of SM time, in percent. */
static double measure(struct gpu_model *m, struct seat *seats, int count, uint64_t run_ns)
{
	uint64_t sm[MOST], work[MOST], held[MOST];
	double sum = 0;

	for (int i = 0; i < count; i++) {
		sm[i] = gpu_model_sm_ns(m, seats[i].index);
		work[i] = gpu_model_work_ns(m, seats[i].index);
		held[i] = arbiter_pace(gpu_model_arbiter(m), seats[i].index).held_ns;
	}
	gpu_model_run(m, run_ns);
	for (int i = 0; i < count; i++) {
		struct seat *s = &seats[i];
		uint64_t now_held = arbiter_pace(gpu_model_arbiter(m), s->index).held_ns;

		s->got_pct = 100.0 * (double)(gpu_model_sm_ns(m, s->index) - sm[i]) / (double)run_ns;
		s->work_pct = 100.0 * (double)(gpu_model_work_ns(m, s->index) - work[i]) /
			      (double)run_ns;
		s->held_pct = 100.0 * (double)(now_held - held[i]) / (double)run_ns;
		sum += s->got_pct;
	}
	return sum;
}

static double together(const char *name, struct gpu_model *m, struct seat *seats, int count)
{
	double sum;

	gpu_model_run(m, 1 * SECOND);
	sum = measure(m, seats, count, 10 * SECOND);
	for (int i = 0; i < count; i++)
		table_add("%-44s %3.0f / %3.0f  %6.2f  %6.2f  held %5.2f\n", i ? "" : name,
			  seats[i].cores, seats[i].limit, seats[i].got_pct, seats[i].work_pct,
			  seats[i].held_pct);
	table_add("%-44s %9s  %6.2f\n", "", "sum", sum);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
	return sum;
}

/* The hardware enforces limits: the gate holds no launches and counts nothing. */
static void test_caps_never_hold(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct seat seats[] = { { 45, 45, { .kernel_ns = 1 * MS } },
				{ 30, 30, { .kernel_ns = 20 * US, .prediction = 3 } },
				{ 15, 15, { .kernel_ns = 5 * MS } } };
	struct gpu_model *m = known_table(&config, seats, 3);
	uint64_t steps;

	gpu_model_run(m, 100 * MS);
	steps = gpu_model_steps(m);
	for (int i = 0; i < 2000; i++) {
		gpu_model_run(m, 1 * MS);
		for (int k = 0; k < 3; k++)
			assert_int_equal(arbiter_state(gpu_model_arbiter(m), seats[k].index),
					 LEASE_FREE);
	}
	/* As often as without an arbiter. */
	assert_true(gpu_model_steps(m) - steps < 450);
	together("caps", m, seats, 3);
	for (int i = 0; i < 3; i++) {
		assert_true(fabs(seats[i].got_pct - seats[i].cores) < 0.1);
		assert_true(seats[i].held_pct <= 0);
	}
}

/* It is charged its part of the SMs for the time in which it has work. */
static void test_a_cap_is_charged_its_part(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct seat seats[] = {
		{ 40, 40, { .kernel_ns = 1 * MS } },
		{ 30, 30, { .kernel_ns = 1 * MS, .burst_ns = 20 * MS, .think_ns = 66 * MS } }
	};
	struct gpu_model *m = known_table(&config, seats, 2);
	struct arbiter_account before[2], after[2];

	for (int i = 0; i < 2; i++)
		before[i] = arbiter_account(gpu_model_arbiter(m), seats[i].index);
	measure(m, seats, 2, 5 * SECOND);
	for (int i = 0; i < 2; i++) {
		double charged;

		after[i] = arbiter_account(gpu_model_arbiter(m), seats[i].index);
		charged = 100.0 * (double)(after[i].charged_ns - before[i].charged_ns) /
			  (5.0 * SECOND);
		assert_true(fabs(charged - seats[i].got_pct) < 1);
	}
	gpu_model_free(m);
}

/* Two that lend to each other, and are served alike. */
static void test_equals_are_never_held(void **state)
{
	static const struct {
		const char *name;
		double contended;
		struct gpu_model_load load[2];
	} cases[] = {
		{ .name = "equals, 1 ms", .load = { { .kernel_ns = MS }, { .kernel_ns = MS } } },
		{ .name = "equals, 20 us and 5 ms",
		  .load = { { .kernel_ns = 20 * US }, { .kernel_ns = 5 * MS } } },
		{ .name = "equals, told 3 times and half",
		  .load = { { .kernel_ns = MS, .prediction = 3 },
			    { .kernel_ns = MS, .prediction = 0.5 } } },
		{ .name = "equals with room",
		  .load = { { .kernel_ns = 100 * US, .part = 0.6 },
			    { .kernel_ns = 100 * US, .part = 0.6 } } },
		{ .name = "equals in steps",
		  .load = { { .kernel_ns = MS, .burst_ns = 5 * MS, .think_ns = MS / 2 },
			    { .kernel_ns = MS, .burst_ns = 5 * MS, .think_ns = MS / 2 } } },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct gpu_model_config config = gpu_model_default_config();
		struct seat seats[] = { { 50, 100, cases[c].load[0] },
					{ 50, 100, cases[c].load[1] } };

		config.contended = cases[c].contended;
		together(cases[c].name, known_table(&config, seats, 2), seats, 2);
		assert_true(seats[0].held_pct <= 0 && seats[1].held_pct <= 0);
	}
}

/*
 * The hardware alone would give equal parts: a member with 70 % beside one with 30 % gets its guarantee, and no SM time stays
 * idle for it.
 */
static void test_guarantees_are_kept(void **state)
{
	static const struct {
		const char *name;
		struct gpu_model_load load[2];
		uint64_t stall_ns;
	} cases[] = {
		{ .name = "70 / 30, 1 ms", .load = { { .kernel_ns = MS }, { .kernel_ns = MS } } },
		{ .name = "70 / 30, 20 us and 5 ms",
		  .load = { { .kernel_ns = 20 * US }, { .kernel_ns = 5 * MS } } },
		{ .name = "70 / 30, 5 ms and 20 us",
		  .load = { { .kernel_ns = 5 * MS }, { .kernel_ns = 20 * US } } },
		{ .name = "70 / 30, told 3 times and half",
		  .load = { { .kernel_ns = MS, .prediction = 3 },
			    { .kernel_ns = MS, .prediction = 0.5 } } },
		{ .name = "70 / 30, the 30 pulls 3 times",
		  .load = { { .kernel_ns = MS }, { .kernel_ns = MS, .pull = 3 } } },
		{ .name = "70 / 30, streams",
		  .load = { { .kernel_ns = MS, .streams = 4, .part = 0.5 },
			    { .kernel_ns = MS, .streams = 8, .part = 0.2 } } },
		{ .name = "70 / 30, a daemon that is kept off its CPU",
		  .load = { { .kernel_ns = MS }, { .kernel_ns = MS } },
		  .stall_ns = 20 * MS },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct gpu_model_config config = gpu_model_default_config();
		struct seat seats[] = { { 70, 100, cases[c].load[0] },
					{ 30, 100, cases[c].load[1] } };
		double sum;

		config.stall_ns = cases[c].stall_ns;
		config.stall_every_ns = cases[c].stall_ns ? 500 * MS : 0;
		sum = together(cases[c].name, known_table(&config, seats, 2), seats, 2);
		assert_true(seats[0].got_pct > 68);
		assert_true(seats[1].got_pct > 28.5);
		assert_true(seats[0].held_pct <= 0);
		assert_true(sum > 98.5);
	}
}

/* No member starves or is held below its guarantee, whatever the hardware does. */
static void test_several(void **state)
{
	static const struct {
		const char *name;
		double pull[4];
		uint64_t kernel_ns[4];
	} cases[] = {
		{ .name = "45 / 30 / 15 and one of none", .kernel_ns = { MS, MS, MS, MS } },
		{ .name = "20 us to 5 ms", .kernel_ns = { 20 * US, MS, 5 * MS, 200 * US } },
		{ .name = "the least pulls 4 times",
		  .pull = { 1, 1, 4, 1 },
		  .kernel_ns = { MS, MS, MS, MS } },
		{ .name = "the one of none pulls 4 times",
		  .pull = { 1, 1, 1, 4 },
		  .kernel_ns = { MS, MS, MS, MS } },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct gpu_model_config config = gpu_model_default_config();
		struct seat seats[] = {
			{ 45, 100, { 0 } }, { 30, 100, { 0 } }, { 15, 100, { 0 } }, { 0, 100, { 0 } }
		};
		double sum;

		for (int i = 0; i < 4; i++)
			seats[i].load = (struct gpu_model_load){ .kernel_ns = cases[c].kernel_ns[i],
								 .pull = cases[c].pull[i] };
		sum = together(cases[c].name, known_table(&config, seats, 4), seats, 4);
		for (int i = 0; i < 3; i++)
			assert_true(seats[i].got_pct > 0.95 * seats[i].cores);
		assert_true(seats[3].got_pct > 5);
		assert_true(sum > 98.5);
	}
}

/* Its speed was never seen alone: plain MPS. */
static void test_unknown_speeds_hold_no_member(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct seat seats[] = { { 70, 100, { .kernel_ns = 1 * MS } },
				{ 30, 100, { .kernel_ns = 1 * MS } } };
	struct gpu_model *m = table_new(&config, seats, 2);

	begin(m, &seats[0]);
	begin(m, &seats[1]);
	together("70 / 30, never alone", m, seats, 2);
	assert_true(seats[0].held_pct <= 0 && seats[1].held_pct <= 0);
	assert_true(fabs(seats[0].got_pct - seats[1].got_pct) < 0.5);
}

/* A new member of unknown speed is held beside one of known speed, but not below its guarantee. */
static void test_a_newcomer_is_slowed_first(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	/* Timed beside others, its kernels seem twice as long. */
	struct seat seats[] = { { 70, 100, { .kernel_ns = 1 * MS } },
				{ 30, 100, { .kernel_ns = 1 * MS, .prediction = 2 } } };
	struct gpu_model *m = table_new(&config, seats, 2);

	begin(m, &seats[0]);
	gpu_model_run(m, 1 * SECOND);
	begin(m, &seats[1]);
	together("70 / 30, which was never alone", m, seats, 2);
	assert_true(seats[0].got_pct > 68);
	assert_true(seats[1].got_pct > 28.5);
}

static double got_over(struct gpu_model *m, const struct seat *seat, uint64_t run_ns)
{
	uint64_t sm = gpu_model_sm_ns(m, seat->index);

	gpu_model_run(m, run_ns);
	return 100.0 * (double)(gpu_model_sm_ns(m, seat->index) - sm) / (double)run_ns;
}

/* A pause of one is the other's at once; and over at once. */
static void test_pauses(void **state)
{
	static const uint64_t kernels[] = { 50 * US, 500 * US, 2 * MS, 5 * MS };
	double least_lent = 100, least_back = 100, least_back_long = 100;

	for (int run = 0; run < 40; run++) {
		struct gpu_model_config config = gpu_model_default_config();
		struct seat seats[] = { { 70, 100, { .kernel_ns = 1 * MS } },
					{ 30, 100, { .kernel_ns = kernels[run % 4] } } };
		struct gpu_model *m;

		config.seed = (uint64_t)run + 1;
		m = known_table(&config, seats, 2);
		gpu_model_run(m, 3 * SECOND + (uint64_t)run * 137 * US);
		end(m, &seats[0]);
		gpu_model_run(m, 50 * MS);
		least_lent = fmin(least_lent, got_over(m, &seats[1], 200 * MS));
		begin(m, &seats[0]);
		gpu_model_run(m, 20 * MS);
		if (kernels[run % 4] < 5 * MS)
			least_back = fmin(least_back, got_over(m, &seats[0], 50 * MS));
		else
			least_back_long = fmin(least_back_long, got_over(m, &seats[0], 50 * MS));
		gpu_model_free(m);
	}
	table_add("70 / 30, in the 70's pause: %.1f; 20 to 70 ms after it: %.1f, beside kernels of 5 ms %.1f\n",
		  least_lent, least_back, least_back_long);
	assert_true(least_lent > 98);
	assert_true(least_back > 65);
	/* One more of those kernels is a tenth of that time. */
	assert_true(least_back_long > 57);
}

/* A member that reports more or less than its work gets its share under plain MPS, and stops no other. */
static void test_liars(void **state)
{
	static const struct {
		const char *name;
		double prediction;
		enum lie lie;
	} cases[] = { { "tells 10 times as much", 10, LIE_NONE },
		      { "tells a tenth", 0.1, LIE_NONE },
		      { "tells a tenth since it is not alone", -0.1, LIE_NONE },
		      { "tells 10 times as much since then", -10, LIE_NONE },
		      { "is idle", 1, LIE_IDLE },
		      { "is busy", 1, LIE_BUSY },
		      { "has much in flight", 1, LIE_INFLIGHT },
		      { "tells anything", 1, LIE_GARBAGE } };

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct gpu_model_config config = gpu_model_default_config();
		struct seat seats[] = { { 50, 100, { .kernel_ns = 1 * MS } },
					{ 50, 100, { .kernel_ns = 1 * MS } } };
		struct gpu_model *m;

		if (cases[c].prediction > 0)
			seats[1].load.prediction = cases[c].prediction;
		m = table_new(&config, seats, 2);
		for (int i = 0; i < 2; i++) {
			begin(m, &seats[i]);
			gpu_model_run(m, 1 * SECOND);
			end(m, &seats[i]);
			gpu_model_run(m, 100 * MS);
		}
		seats[1].load.prediction = fabs(cases[c].prediction);
		seats[1].load.lie = cases[c].lie;
		begin(m, &seats[0]);
		begin(m, &seats[1]);
		together(cases[c].name, m, seats, 2);
		assert_true(seats[0].got_pct > 48.5);
		assert_true(seats[1].got_pct < 51.5);
	}
}

/* Of two members that could be slowed down, the one of lower priority is slowed first. */
static void test_lower_priorities_give_way_first(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct seat seats[] = { { 50, 100, { .kernel_ns = 1 * MS }, 0 },
				{ 10, 100, { .kernel_ns = 1 * MS }, 5 },
				{ 10, 100, { .kernel_ns = 1 * MS }, 0 } };

	together("50 beside two of 10", known_table(&config, seats, 3), seats, 3);
	assert_true(seats[0].got_pct > 48);
	assert_true(seats[1].got_pct > seats[2].got_pct + 5);
}

/* No guarantees: as under plain MPS. */
static void test_without_guarantees_no_member_is_held(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct seat seats[] = { { 0, 100, { .kernel_ns = 1 * MS, .pull = 2 } },
				{ 0, 100, { .kernel_ns = 50 * US, .part = 0.5, .prediction = 4 } },
				{ 0, 100, { .kernel_ns = 1 * MS } } };
	struct gpu_model *m = known_table(&config, seats, 3);
	double sum;

	gpu_model_run(m, 1 * SECOND);
	for (int i = 0; i < 3; i++)
		assert_int_equal(arbiter_state(gpu_model_arbiter(m), seats[i].index), LEASE_FREE);
	sum = together("no guarantees", m, seats, 3);
	assert_true(sum > 99.9);
	/* The card's own doing. */
	assert_true(seats[0].got_pct > 1.9 * seats[2].got_pct);
}

/* A member alone: counted until its speed is well known, then free; nothing is lost. */
static void test_alone_is_free(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct seat seats[] = { { 30, 100, { .kernel_ns = 50 * US } }, { 60, 100, { 0 } } };
	struct gpu_model *m = table_new(&config, seats, 2);

	begin(m, &seats[0]);
	gpu_model_run(m, 500 * MS);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), seats[0].index), LEASE_GO);
	measure(m, seats, 2, 2 * SECOND);
	assert_true(seats[0].got_pct > 99);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), seats[0].index), LEASE_FREE);
	assert_int_equal(arbiter_mode(gpu_model_arbiter(m)), ARBITER_FREE);
	measure(m, seats, 2, 2 * SECOND);
	assert_true(seats[0].got_pct > 99);
	gpu_model_free(m);
}

static void test_reports_its_basis(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct seat seats[] = { { 70, 100, { .kernel_ns = 1 * MS, .prediction = 2 } },
				{ 30, 100, { .kernel_ns = 200 * US } } };
	struct gpu_model *m = known_table(&config, seats, 2);
	int alone = gpu_model_add(m, (struct arbiter_share){ 0, 100, 0 }, &resting);
	struct arbiter_pace first, second, none;

	measure(m, seats, 2, 5 * SECOND);
	first = arbiter_pace(gpu_model_arbiter(m), seats[0].index);
	second = arbiter_pace(gpu_model_arbiter(m), seats[1].index);
	none = arbiter_pace(gpu_model_arbiter(m), alone);
	assert_true(first.is_member && second.is_member && !none.is_member);
	assert_true(first.is_known && !first.is_held && first.pace <= 0);
	assert_true(fabs(first.speed - 2) < 0.05 && fabs(first.share - 0.7) < 0.05);
	assert_true(second.is_held && second.held_ns > 0);
	assert_true(second.pace >= 0.3 - 1e-6 && second.pace < 0.4);
	assert_true(none.speed == 1 && none.held_ns == 0);
	gpu_model_free(m);
}

static int print(void **state)
{
	printf("\nPercent of the card's SM-time, and of the time as work alone.\n%s", table_text());
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caps_never_hold),
		cmocka_unit_test(test_a_cap_is_charged_its_part),
		cmocka_unit_test(test_equals_are_never_held),
		cmocka_unit_test(test_guarantees_are_kept),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_unknown_speeds_hold_no_member),
		cmocka_unit_test(test_a_newcomer_is_slowed_first),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_liars),
		cmocka_unit_test(test_lower_priorities_give_way_first),
		cmocka_unit_test(test_without_guarantees_no_member_is_held),
		cmocka_unit_test(test_alone_is_free),
		cmocka_unit_test(test_reports_its_basis),
	};

	return cmocka_run_group_tests(tests, NULL, print);
}
