#include "by_turns.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "load/clock.h"

#define WARM_PAIRS 3
#define ERROR_PART 0.002

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double quantile(const double *sorted, unsigned count, double part)
{
	return sorted[(unsigned)((double)(count - 1) * part)];
}

void by_turns_stay_on_processor(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();
	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

/* Of a normal distribution with those quartiles: 1.2533 sigma / sqrt(n), with sigma = distance / 1.349. */
static double error_of_median(double low, double high, unsigned count)
{
	return 0.929 * (high - low) / sqrt(count);
}

struct sample {
	double *native, *added; /* of each pair */
	unsigned count, capacity;
};

static void make_room(struct sample *s)
{
	if (s->count < s->capacity)
		return;
	s->capacity = s->capacity ? 2 * s->capacity : 1024;
	s->native = realloc(s->native, s->capacity * sizeof(*s->native));
	s->added = realloc(s->added, s->capacity * sizeof(*s->added));
	if (s->native == NULL || s->added == NULL) {
		fprintf(stderr, "no memory for %u pairs\n", s->capacity);
		exit(1);
	}
}

/* The native one comes first in every other pair. */
static void time_pair(struct sample *s, unsigned turn, by_turns_function *time_once, void *context)
{
	double ns[2];

	for (unsigned i = 0; i < 2; i++) {
		bool is_native = (turn + i) % 2;
		ns[is_native] = time_once(is_native, context);
	}
	s->native[s->count] = ns[true];
	s->added[s->count] = ns[false] - ns[true];
}

static struct by_turns summarize(struct sample *s)
{
	qsort(s->native, s->count, sizeof(*s->native), compare_doubles);
	qsort(s->added, s->count, sizeof(*s->added), compare_doubles);
	struct by_turns r = { .native_ns = quantile(s->native, s->count, 0.5),
			      .added_ns = quantile(s->added, s->count, 0.5),
			      .low_ns = quantile(s->added, s->count, 0.25),
			      .high_ns = quantile(s->added, s->count, 0.75),
			      .pairs = s->count };
	r.error_ns = error_of_median(r.low_ns, r.high_ns, s->count);
	return r;
}

struct by_turns by_turns_measure(unsigned pairs, double error_part, by_turns_function *time_once,
				 void *context)
{
	struct sample s = { 0 };
	unsigned warm = pairs < 10 * WARM_PAIRS ? 1 : WARM_PAIRS, turn = 0;
	uint64_t end_ns = clock_now_ns() + BY_TURNS_PATIENCE_NS;
	struct by_turns r;

	make_room(&s);
	while (turn < warm)
		time_pair(&s, turn++, time_once, context);
	do {
		for (unsigned i = 0; i < pairs; i++) {
			make_room(&s);
			time_pair(&s, turn++, time_once, context);
			s.count++;
		}
		r = summarize(&s);
	} while (r.error_ns > error_part * r.native_ns && clock_now_ns() < end_ns);
	free(s.native);
	free(s.added);
	return r;
}

void by_turns(const char *name, unsigned pairs, by_turns_function *time_once, void *context)
{
	struct by_turns r = by_turns_measure(pairs, ERROR_PART, time_once, context);

	printf("{\"name\":\"%s\",\"native_ns\":%.1f,\"added_ns\":%.1f,\"added_low_ns\":%.1f,"
	       "\"added_high_ns\":%.1f,\"error_ns\":%.1f,\"pairs\":%u}\n",
	       name, r.native_ns, r.added_ns, r.low_ns, r.high_ns, r.error_ns, r.pairs);
	fflush(stdout);
}
