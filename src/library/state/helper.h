/*
 * The helper thread: one per process, started with the first context. It does what needs no call of the program
 * (helper_duties), and then sleeps in the kernel: until it is woken, or for as long as its look returned.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct helper_duties {
	uint64_t (*look)(bool was_woken); /* returns how long to sleep, in ns */
	void (*started)(void); /* in the thread that starts it; its first look may be late */
	/* At exit. It is registered after cuInit, so it runs before the driver's own handlers. */
	void (*leave)(void);
};

/* Before the first helper_start(). */
void helper_assign(const struct helper_duties *duties);

/* Starts it unless it runs. Signals stay the program's: the thread blocks them all. */
void helper_start(void);

/* Look now: work has begun after a pause, or a thread begins to wait for own work. Cheap when it is awake already. */
void helper_wake(void);

/* At exit: no look begins from here on. */
void helper_stop(void);
/* After that: waits for a look that is under way, for 20 ms at most. */
void helper_wait_until_out(void);

/* In a forked child, which has no such thread. */
void helper_reset(void);
