/*
 * The helper thread: one per process, started with the first context at the latest. It does the library's periodic tasks, which
 * no call of the program triggers (poll). Then it sleeps for the time that poll() returned, or until another thread wakes it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct helper_duties {
	uint64_t (*poll)(bool was_woken); /* returns how long to sleep, in ns */
	/* Called once, by the thread that starts the helper thread, because the first poll may come late. */
	void (*on_start)(void);
	/* At exit. The handler is registered after cuInit, so it runs before the driver's own exit handlers. */
	void (*on_exit)(void);
};

/* Call before the first helper_start(). */
void helper_assign(const struct helper_duties *duties);

/*
 * Starts the thread unless it runs. It blocks all signals, so that they reach only the program's threads. Returns false if it
 * can't be started: no work would be seen to end, so the caller must refuse the context.
 */
bool helper_start(void);

/* Makes the thread poll now. Call if work begins on an idle device, or a thread waits for GPU work. Cheap if it is awake. */
void helper_wake(void);

/* At exit: no poll begins after this. */
void helper_stop(void);
/* Call after helper_stop(). Waits up to 20 ms for a poll in progress to end. */
void helper_wait_for_poll(void);

/* Call in a forked child, which has no helper thread. */
void helper_reset(void);
