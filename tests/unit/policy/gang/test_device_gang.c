/*
 * Tenants on several devices, on simulated GPUs whose collectives end only after they have begun on all devices (gang_model.h).
 * A tenant's progress is its collectives, as a part of those that it does alone. Prints the table in docs/decisions/gang-
 * turns.md.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gang_model.h"

#define RUN_NS (8 * SECOND)

/* A step of 6 ms with ranks that are not equally fast. */
static const struct gang_model_load training = {
	.devices = 3,
	.kernel_ns = 300 * US,
	.kernel_max_ns = 700 * US,
	.kernels = 10,
	.collective_ns = MS,
};

static struct gang_model_load on(struct gang_model_load load, unsigned devices)
{
	load.devices = devices;
	return load;
}

static struct gang_model_load single(unsigned device)
{
	return (struct gang_model_load){ .devices = 1u << device, .kernel_ns = MS, .kernels = 1 };
}

static struct arbiter_share share(double cores, double limit)
{
	return (struct arbiter_share){ .cores_pct = cores, .limit_pct = limit };
}

static struct gang_model *model(unsigned devices, bool is_off, uint64_t seed)
{
	struct gang_model_config config = gang_model_default_config();

	config.devices = devices;
	config.is_off = is_off;
	config.seed = seed;
	return gang_model_new(&config);
}

/* Collectives a second of a tenant that has its devices to itself; the same load is not run again. */
static double rate_alone(const struct gang_model_load *load)
{
	static struct gang_model_load last;
	static double rate;
	struct gang_model *m;
	int t;

	if (!memcmp(load, &last, sizeof(last)))
		return rate;
	last = *load;
	m = model(GANG_MODEL_DEVICES, false, 99);
	t = gang_model_add(m, share(0, 100), load);
	gang_model_run(m, 2 * SECOND);
	rate = (double)gang_model_collectives(m, t) / 2;
	gang_model_free(m);
	return rate;
}

/* In percent of its rate alone. */
static double progress(const struct gang_model *m, int tenant, const struct gang_model_load *load,
		       uint64_t before, uint64_t run_ns)
{
	uint64_t done = gang_model_collectives(m, tenant) - before;

	return 100.0 * (double)done / ((double)run_ns / (double)SECOND) / rate_alone(load);
}

static double work_pct(const struct gang_model *m, int tenant, unsigned device, uint64_t run_ns)
{
	return 100.0 * (double)gang_model_work_ns(m, tenant, device) / (double)run_ns;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void assert_within(double value, double want, double by, const char *what)
{
	if (fabs(value - want) <= by)
		return;
	print_error("%s: %.2f, not within %.2f of %.2f\n", what, value, by, want);
	fail();
}

struct outcome {
	double gang_pct, single_pct[GANG_MODEL_DEVICES];
	uint64_t longest_ns;
};

/* A training over all devices, beside one tenant on each. */
static struct outcome beside_singles(const struct gang_model_load *load, unsigned devices,
				     bool is_off, uint64_t seed)
{
	struct gang_model *m = model(devices, is_off, seed);
	struct outcome o = { 0 };
	int gang = gang_model_add(m, share(50, 100), load), other[GANG_MODEL_DEVICES];

	for (unsigned d = 0; d < devices; d++) {
		struct gang_model_load one = single(d);

		other[d] = gang_model_add(m, share(50, 100), &one);
	}
	gang_model_run(m, RUN_NS);
	o.gang_pct = progress(m, gang, load, 0, RUN_NS);
	for (unsigned d = 0; d < devices; d++)
		o.single_pct[d] = work_pct(m, other[d], d, RUN_NS);
	o.longest_ns = gang_model_take_longest_collective_ns(m, gang);
	assert_int_equal(gang_model_violations(m), 0);
	if (!is_off)
		assert_true(gang_turns(gang_model_board(m), gang_model_gang(m, gang)) > 100);
	gang_model_free(m);
	return o;
}

static void table_add(const char *name, const struct outcome *o, unsigned devices)
{
	print_message("  %-34s %6.2f %%  singles", name, o->gang_pct);
	for (unsigned d = 0; d < devices; d++)
		print_message(" %6.2f", o->single_pct[d]);
	print_message("  longest collective %7.2f ms\n", ms(o->longest_ns));
}

static void test_half_beside_singles(void **state)
{
	for (uint64_t seed = 1; seed <= 2; seed++) {
		struct outcome off = beside_singles(&training, 2, true, seed);
		struct outcome o = beside_singles(&training, 2, false, seed);

		table_add("each device by itself", &off, 2);
		table_add("gang", &o, 2);
		assert_within(o.gang_pct, 50, 2, "gang");
		assert_within(o.single_pct[0], 50, 2, "single on 0");
		assert_within(o.single_pct[1], 50, 2, "single on 1");
		assert_true(o.longest_ns < 15 * MS);
		/* Without the gang's turns the bounds above must fail. */
		assert_true(off.gang_pct < 30);
	}
}

static void test_other_shapes(void **state)
{
	static const struct {
		const char *name;
		struct gang_model_load load;
		unsigned devices;
		double least_pct;
	} rows[] = {
		{ "four devices", { 15, 300 * US, 700 * US, 10, MS, 0, 0, 0, 0 }, 4, 46 },
		{ "a collective each 150 us", { 3, 100 * US, 0, 1, 50 * US, 0, 0, 0, 0 }, 2, 45 },
		{ "kernels of 4 ms", { 3, 4 * MS, 0, 3, 5 * MS, 0, 0, 0, 0 }, 2, 44 },
		{ "waits for each step", { 3, 200 * US, 0, 20, MS, 1, 20 * US, 0, 0 }, 2, 45 },
		{ "0.5 to 3 ms between steps",
		  { 3, 500 * US, 0, 20, MS, 1, 500 * US, 3 * MS, 0 },
		  2,
		  35 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome off = beside_singles(&rows[i].load, rows[i].devices, true, 5);
		struct outcome o = beside_singles(&rows[i].load, rows[i].devices, false, 5);

		table_add("each device by itself", &off, rows[i].devices);
		table_add(rows[i].name, &o, rows[i].devices);
		assert_true(o.gang_pct >= rows[i].least_pct);
		assert_true(o.gang_pct > off.gang_pct);
		for (unsigned d = 0; d < rows[i].devices; d++)
			assert_true(o.single_pct[d] >= 45);
	}
}

/* Two tenants that both want two devices whole. */
static void test_two_gangs(void **state)
{
	static const struct {
		double cores[2], want[2];
	} rows[] = { { { 50, 50 }, { 50, 50 } }, { { 60, 30 }, { 66.7, 33.3 } } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gang_model *m = model(2, false, 3);
		int t[2];

		for (int k = 0; k < 2; k++)
			t[k] = gang_model_add(m, share(rows[i].cores[k], 100), &training);
		gang_model_run(m, RUN_NS);
		for (int k = 0; k < 2; k++) {
			double got = progress(m, t[k], &training, 0, RUN_NS);
			uint64_t longest_ns = gang_model_take_longest_collective_ns(m, t[k]);

			print_message(
				"  gang of %2.0f on devices 0 and 1: %6.2f %%, longest %6.2f ms\n",
				rows[i].cores[k], got, ms(longest_ns));
			assert_within(got, rows[i].want[k], 2.5, "gang");
			assert_true(longest_ns < 15 * MS);
		}
		assert_int_equal(gang_model_violations(m), 0);
		gang_model_free(m);
	}
}

/* Each pair of three devices has a gang: two can never run at once, and none may wait for ever. */
static void test_overlapping_gangs(void **state)
{
	static const unsigned devices[3] = { 3, 6, 5 };
	struct gang_model *m = model(3, false, 4);
	double got[3];
	int t[3];

	for (int k = 0; k < 3; k++) {
		struct gang_model_load load = on(training, devices[k]);

		t[k] = gang_model_add(m, share(30, 100), &load);
	}
	gang_model_run(m, RUN_NS);
	for (int k = 0; k < 3; k++) {
		uint64_t longest_ns = gang_model_take_longest_collective_ns(m, t[k]);

		got[k] = progress(m, t[k], &training, 0, RUN_NS);
		print_message(
			"  gang %d of 3 on pairs of three devices: %6.2f %%, longest %6.2f ms\n", k,
			got[k], ms(longest_ns));
		assert_within(got[k], 32.5, 2.5, "gang");
		assert_true(longest_ns < 20 * MS);
		assert_true(gang_model_take_longest_wait_ns(m, t[k]) < 150 * MS);
	}
	assert_int_equal(gang_model_violations(m), 0);
	gang_model_free(m);
}

/* The same with one on each device that is no gang. */
static void test_overlapping_gangs_beside_singles(void **state)
{
	static const unsigned devices[3] = { 3, 6, 5 };
	struct gang_model *m = model(3, false, 5);
	int t[6];

	for (int k = 0; k < 3; k++) {
		struct gang_model_load load = on(training, devices[k]);
		struct gang_model_load one = single((unsigned)k);

		t[k] = gang_model_add(m, share(25, 100), &load);
		t[3 + k] = gang_model_add(m, share(25, 100), &one);
	}
	gang_model_run(m, RUN_NS);
	for (int k = 0; k < 6; k++) {
		double got = k < 3 ? progress(m, t[k], &training, 0, RUN_NS)
				   : work_pct(m, t[k], (unsigned)k - 3, RUN_NS);

		print_message("  %s: %6.2f %%, longest wait %6.2f ms\n",
			      k < 3 ? "gang of three" : "single beside two", got,
			      ms(gang_model_take_longest_wait_ns(m, t[k])));
		/* Only one of the gangs runs at a time: tenants on a single device get the idle time. */
		assert_true(got >= 23);
	}
	assert_int_equal(gang_model_violations(m), 0);
	gang_model_free(m);
}

/* The gang alone uses one of its devices: it loses nothing there, and takes no more on the other. */
static void test_beside_an_idle_device(void **state)
{
	struct gang_model *m = model(2, false, 6);
	struct gang_model_load one = single(1);
	int gang = gang_model_add(m, share(50, 100), &training);
	int other = gang_model_add(m, share(50, 100), &one);
	double got;

	gang_model_run(m, RUN_NS);
	got = progress(m, gang, &training, 0, RUN_NS);
	print_message("  one device shared: gang %6.2f %%, single %6.2f %%\n", got,
		      work_pct(m, other, 1, RUN_NS));
	assert_within(got, 50, 3, "gang");
	assert_within(work_pct(m, other, 1, RUN_NS), 50, 2, "single");
	assert_int_equal(arbiter_mode(gang_model_arbiter(m, 0)), ARBITER_FREE);
	gang_model_free(m);
}

/* Two devices visible, one used: that is no gang, and the other device is the other's alone. */
static void test_one_used_of_two(void **state)
{
	struct gang_model *m = model(2, false, 7);
	struct gang_model_load load = training, one0 = single(0), one1 = single(1);
	int t, other0, other1;

	load.only = 1;
	t = gang_model_add(m, share(50, 100), &load);
	other0 = gang_model_add(m, share(50, 100), &one0);
	other1 = gang_model_add(m, share(50, 100), &one1);
	gang_model_run(m, 5 * SECOND);
	assert_within(work_pct(m, t, 0, 5 * SECOND), 49, 1, "user of one device");
	assert_within(work_pct(m, other0, 0, 5 * SECOND), 49, 1, "single on 0");
	assert_true(work_pct(m, other1, 1, 5 * SECOND) > 99);
	assert_int_equal(gang_turns(gang_model_board(m), gang_model_gang(m, t)), 0);
	gang_model_free(m);
}

/* From two devices to one and back: others use its idle time at once. */
static void test_a_gang_starts_and_ends(void **state)
{
	struct gang_model *m = model(2, false, 8);
	struct gang_model_load load = training, half = training, one = single(1);
	int t = gang_model_add(m, share(50, 100), &load),
	    other = gang_model_add(m, share(50, 100), &one);
	uint64_t before;

	half.only = 1;
	half.collective_ns = 0;
	load.collective_ns = 0; /* so that a rank can leave in the middle */
	gang_model_set_load(m, t, &load);
	gang_model_run(m, 2 * SECOND);
	gang_model_set_load(m, t, &half);
	gang_model_run(m, 200 * MS);
	before = gang_model_work_ns(m, other, 1);
	gang_model_run(m, 2 * SECOND);
	assert_true(gang_model_work_ns(m, other, 1) - before > 2 * SECOND * 99 / 100);
	gang_model_set_load(m, t, &load);
	gang_model_run(m, 200 * MS);
	before = gang_model_work_ns(m, other, 1);
	gang_model_run(m, 2 * SECOND);
	assert_within((double)(gang_model_work_ns(m, other, 1) - before) / (2.0 * SECOND) * 100, 50,
		      2, "single");
	assert_int_equal(gang_model_violations(m), 0);
	gang_model_free(m);
}

/* Held to 30 % on both devices, which stand idle otherwise; beside others that want all. */
static void test_cap(void **state)
{
	for (int others = 0; others <= 1; others++) {
		struct gang_model *m = model(2, false, 9);
		struct gang_model_load one0 = single(0), one1 = single(1);
		int gang = gang_model_add(m, share(30, 30), &training), other = -1;
		double got;

		if (others) {
			other = gang_model_add(m, share(0, 100), &one0);
			gang_model_add(m, share(0, 100), &one1);
		}
		gang_model_run(m, RUN_NS);
		got = progress(m, gang, &training, 0, RUN_NS);
		print_message("  capped at 30 %%%s: gang %6.2f %%, longest collective %6.2f ms\n",
			      others ? " beside others" : "", got,
			      ms(gang_model_take_longest_collective_ns(m, gang)));
		assert_within(got, 30, 2, "gang");
		if (others)
			assert_within(work_pct(m, other, 0, RUN_NS), 69, 2, "single on 0");
		assert_int_equal(gang_model_violations(m), 0);
		gang_model_free(m);
	}
}

/* Requests of a higher priority on one of the devices, and a gang that is one itself. */
static void test_priority(void **state)
{
	struct gang_model *m = model(2, false, 10);
	struct gang_model_load request = { .devices = 1,
					   .kernel_ns = MS,
					   .kernels = 5,
					   .sync_every = 1,
					   .think_ns = 45 * MS,
					   .think_max_ns = 45 * MS };
	struct arbiter_share urgent = share(20, 100);
	int gang, first;
	double got;

	urgent.priority = 5;
	gang = gang_model_add(m, share(60, 100), &training);
	first = gang_model_add(m, urgent, &request);
	gang_model_run(m, RUN_NS);
	got = progress(m, gang, &training, 0, RUN_NS);
	print_message(
		"  under requests on device 0: gang %6.2f %%, longest wait of a request %6.2f ms\n",
		got, ms(gang_model_take_longest_wait_ns(m, first)));
	assert_true(got >= 80);
	/* 5 ms of each 50, and the work in flight when they begin. */
	assert_true(work_pct(m, first, 0, RUN_NS) > 8.5);
	assert_int_equal(gang_model_violations(m), 0);
	gang_model_free(m);

	m = model(2, false, 11);
	gang = gang_model_add(m, urgent, &training);
	{
		struct gang_model_load one0 = single(0), one1 = single(1);
		int other = gang_model_add(m, share(80, 100), &one0);

		gang_model_add(m, share(80, 100), &one1);
		gang_model_run(m, RUN_NS);
		got = progress(m, gang, &training, 0, RUN_NS);
		print_message("  gang of 20 %% with priority: %6.2f %%, beside one of 80: %6.2f %%\n",
			      got, work_pct(m, other, 0, RUN_NS));
		assert_within(got, 20, 3, "gang");
		assert_true(work_pct(m, other, 0, RUN_NS) > 75);
	}
	assert_int_equal(gang_model_violations(m), 0);
	gang_model_free(m);
}

/*
 * Its neighbours on the devices have different shares: it gets as much as on the device where it has the least, and the rest is
 * used.
 */
static void test_unequal_devices(void **state)
{
	struct gang_model *m = model(2, false, 12);
	struct gang_model_load one0 = single(0), one1 = single(1), late = single(1);
	int gang = gang_model_add(m, share(30, 100), &training);
	int other0 = gang_model_add(m, share(70, 100), &one0);
	int other1 = gang_model_add(m, share(30, 100), &one1), third;
	uint64_t before1, before3;
	double got;

	gang_model_run(m, RUN_NS);
	got = progress(m, gang, &training, 0, RUN_NS);
	print_message("  70 beside its 30 on one device, 30 on the other: gang %6.2f, others %6.2f "
		      "%6.2f\n",
		      got, work_pct(m, other0, 0, RUN_NS), work_pct(m, other1, 1, RUN_NS));
	assert_within(got, 30, 2.5, "gang");
	assert_within(work_pct(m, other0, 0, RUN_NS), 69, 2, "single on 0");
	assert_within(work_pct(m, other1, 1, RUN_NS), 69, 2, "single on 1");
	/* A tenant that starts now gets its share, but not the time that the gang could not use. */
	third = gang_model_add(m, share(30, 100), &late);
	before1 = gang_model_work_ns(m, other1, 1);
	before3 = gang_model_work_ns(m, third, 1);
	gang_model_run(m, 2 * SECOND);
	assert_within((double)(gang_model_work_ns(m, other1, 1) - before1) / 2e7,
		      (double)(gang_model_work_ns(m, third, 1) - before3) / 2e7, 6,
		      "one of before and one that came");
	gang_model_free(m);
}

/* Stopped by a signal, or gone, in the middle of anything: the others have the devices. */
static void test_stopped_and_removed(void **state)
{
	uint64_t random = 77;

	for (int i = 0; i < 20; i++) {
		struct gang_model *m = model(2, false, (uint64_t)i);
		struct gang_model_load one0 = single(0), one1 = single(1);
		int gang = gang_model_add(m, share(50, 100), &training), other[2];
		uint64_t before[2];

		other[0] = gang_model_add(m, share(50, 100), &one0);
		other[1] = gang_model_add(m, share(50, 100), &one1);
		gang_model_run(m, SECOND + random_between(&random, 0, 100 * MS));
		if (i % 2)
			gang_model_set_stopped(m, gang, true);
		else
			gang_model_remove(m, gang);
		gang_model_run(m, 300 * MS);
		for (int d = 0; d < 2; d++)
			before[d] = gang_model_work_ns(m, other[d], (unsigned)d);
		gang_model_run(m, SECOND);
		for (int d = 0; d < 2; d++)
			assert_true(gang_model_work_ns(m, other[d], (unsigned)d) - before[d] >
				    (i % 2 ? 45 : 95) * SECOND / 100);
		assert_int_equal(gang_model_violations(m), 0);
		gang_model_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half_beside_singles),
		cmocka_unit_test(test_other_shapes),
		cmocka_unit_test(test_two_gangs),
		cmocka_unit_test(test_overlapping_gangs),
		cmocka_unit_test(test_overlapping_gangs_beside_singles),
		cmocka_unit_test(test_beside_an_idle_device),
		cmocka_unit_test(test_one_used_of_two),
		cmocka_unit_test(test_a_gang_starts_and_ends),
		cmocka_unit_test(test_cap),
		cmocka_unit_test(test_priority),
		cmocka_unit_test(test_unequal_devices),
		cmocka_unit_test(test_stopped_and_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
