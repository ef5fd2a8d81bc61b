/*
 * How long the machine stood still: shared ones do, for tenths of seconds, and what is timed then says
 * nothing of what is tested. A thread asks to sleep 10 ms at a time and adds up what it came late.
 */
#pragma once

#include <stdint.h>

/* Starts the thread, once. */
void stillness_watch(void);

/* Nanoseconds that it came late in its worst second so far (100 looks in a row). Any thread. */
uint64_t stillness_worst_ns(void);
/* And in all so far: its growth, over a time, is the part of that in which the machine stood still. Any thread. */
uint64_t stillness_sum_ns(void);
