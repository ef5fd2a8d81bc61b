#include "by_turns.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define WARM_PAIRS 3

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

void by_turns(const char *name, unsigned pairs, by_turns_function *time_once, void *context)
{
	double *native = calloc(pairs, sizeof *native), *added = calloc(pairs, sizeof *added);
	if (native == NULL || added == NULL) {
		fprintf(stderr, "%s: no memory\n", name);
		exit(1);
	}
	unsigned warm = pairs < 10 * WARM_PAIRS ? 1 : WARM_PAIRS;
	for (unsigned i = 0; i < pairs + warm; i++) {
		double ns[2];
		for (unsigned turn = 0; turn < 2; turn++) {
			bool is_native = (turn + i) % 2;
			ns[is_native] = time_once(is_native, context);
		}
		if (i < warm)
			continue;
		native[i - warm] = ns[true];
		added[i - warm] = ns[false] - ns[true];
	}
	qsort(native, pairs, sizeof *native, compare_doubles);
	qsort(added, pairs, sizeof *added, compare_doubles);
	printf("{\"name\":\"%s\",\"native_ns\":%.1f,\"added_ns\":%.1f,\"added_low_ns\":%.1f,"
	       "\"added_high_ns\":%.1f,\"pairs\":%u}\n",
	       name, quantile(native, pairs, 0.5), quantile(added, pairs, 0.5),
	       quantile(added, pairs, 0.25), quantile(added, pairs, 0.75), pairs);
	fflush(stdout);
	free(native);
	free(added);
}
