/*
 * Time of an allocation with this many claims in the store (argument; default 1000), on eight simulated cards. Prints JSON:
 * microseconds of an allocation and a release, milliseconds of a restart with all claims, and the memory used.
 */
#include "claims_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"

#define CARDS 8
#define SAMPLES 500

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_times(const char *name, double *us)
{
	qsort(us, SAMPLES, sizeof(*us), compare);
	printf("\"%s_us\": {\"p50\": %.0f, \"p99\": %.0f, \"max\": %.0f}, ", name, us[SAMPLES / 2],
	       us[SAMPLES * 99 / 100], us[SAMPLES - 1]);
}

static double since_us(uint64_t then_ns)
{
	return (double)(clock_now_ns() - then_ns) / 1e3;
}

static void allocate(struct fixture *f, unsigned number)
{
	char key[64];
	struct claim *claim;
	struct error err = { 0 };
	snprintf(key, sizeof(key), "0f0e0d0c-0b0a-0908-0706-%012u/main", number);
	struct claim_request request = claim_of(f, key, number % CARDS, 16, 0.25,
						(int)(number / CARDS % SLOTS_MAX));
	if (claims_allocate(f->node->claims, &request, &claim, &err) < 0)
		fail_msg("%s", err.text);
}

static void release(struct fixture *f, unsigned number)
{
	char key[64];
	struct error err = { 0 };
	snprintf(key, sizeof(key), "0f0e0d0c-0b0a-0908-0706-%012u/main", number);
	if (claims_release(f->node->claims, key, NULL, &err) < 0)
		fail_msg("%s", err.text);
}

int main(int argc, char **argv)
{
	static double made_us[SAMPLES], released_us[SAMPLES];
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	struct fixture *f;
	log_set_level(LOG_LEVEL_ERROR);
	if (fixture_setup((void **)&f) != 0)
		return 1;
	fixture_stop(f);
	fake_gpu.count = CARDS;
	fixture_start(f);
	for (unsigned i = 0; i < count; i++)
		allocate(f, i);
	/* Adds one and removes one in turn, so the number of claims stays the same. */
	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t then_ns = clock_now_ns();
		allocate(f, count);
		made_us[i] = since_us(then_ns);
		then_ns = clock_now_ns();
		release(f, count);
		released_us[i] = since_us(then_ns);
	}
	claims_must_hold(f);
	printf("{\"claims\": %u, ", count);
	print_times("allocate", made_us);
	print_times("release", released_us);
	uint64_t then_ns = clock_now_ns();
	fixture_stop(f);
	fixture_start(f);
	printf("\"restart_ms\": %.0f, ", since_us(then_ns) / 1e3);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("\"resident_mib\": %.1f}\n", (double)usage.ru_maxrss / 1024);
	return fixture_teardown((void **)&f);
}
