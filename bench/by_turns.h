/*
 * Two ways of doing the same, native and interposed, timed by turns in one process: each pair's two in
 * alternating order, so that what drifts (clocks, caches, other people's work) drifts for both. What one
 * costs more than the other is the median of the pairs' differences.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BY_TURNS_MAX_PAIRS 100000

/*
 * Times it once, one way or the other, and returns nanoseconds: of one call, if it does many. What must
 * be made ready or put away is not timed.
 */
typedef double by_turns_function(bool is_native, void *context);

struct by_turns {
	double native_ns;                 /* median */
	double added_ns, low_ns, high_ns; /* of the pairs' differences: median and quartiles */
	double error_ns;                  /* standard error of added_ns */
	unsigned pairs;
};

/*
 * At least so many pairs, and more while the error is above error_part of the native time, for
 * BY_TURNS_PATIENCE_NS in all: what is judged by one percent must be known better than that, and on a noisy
 * machine takes longer. Ends the program when memory runs out.
 */
#define BY_TURNS_PATIENCE_NS 6000000000ULL
struct by_turns by_turns_measure(unsigned pairs, double error_part, by_turns_function *time_once,
				 void *context);

/* The same to a fifth of a percent, and prints one line of JSON: name, medians, quartiles, error, pairs. */
void by_turns(const char *name, unsigned pairs, by_turns_function *time_once, void *context);

/* The thread stays on the processor where it is; failure only costs steadiness. */
void by_turns_stay_on_processor(void);
