/*
 * The helper thread: one per process, started with the first context. The helper does the work that no call of the
 * program triggers (helper_duties). Then it sleeps in the kernel until another thread wakes it, or until the time that
 * its last poll returned has passed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct helper_duties {
	uint64_t (*look)(bool was_woken); /* one poll; returns how long to sleep, in ns */
	/* Called once, by the thread that starts the helper: the helper's own first poll may come late. */
	void (*started)(void);
	/*
	 * Called at exit. The handler is registered after cuInit, so it runs before the driver's own exit
	 * handlers.
	 */
	void (*leave)(void);
};

/* Sets what the helper does. Call before the first helper_start(). */
void helper_assign(const struct helper_duties *duties);

/*
 * Starts the helper unless it runs. The helper blocks all signals, so that signals reach only the program's
 * threads.
 */
void helper_start(void);

/*
 * Makes the helper poll now, because work has begun after a pause, or a thread begins to wait for the process's
 * own work. Cheap if the helper is already awake.
 */
void helper_wake(void);

/* At exit: no poll begins after this call. */
void helper_stop(void);
/* Call after helper_stop(). Waits for a poll in progress to end, for at most 20 ms. */
void helper_wait_until_out(void);

/* Call in a forked child, which has no helper thread: forgets the parent's. */
void helper_reset(void);
