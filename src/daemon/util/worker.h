/*
 * A thread of the daemon, with the lock for the data that it shares. All threads of the daemon
 * start and stop in this way.
 *
 *     run():  called with the lock held; waits for `wake` as needed, returns when `stop` is set
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* uses the monotonic clock */
	bool stop;           /* guarded by the lock: run() must return */
};

/* Starts run(data). `what` names the thread in an error. On -errno there is nothing to stop. */
int worker_start(struct worker *w, const char *what, void *(*run)(void *), void *data,
		 struct error *err);
/*
 * Sets `stop` and signals `wake`. If the thread sleeps on anything else, the caller must wake it.
 */
void worker_say_stop(struct worker *w);
/* Waits until run() has returned. *w must not be used afterwards. */
void worker_join(struct worker *w);
/* Calls worker_say_stop() and worker_join(). */
void worker_stop(struct worker *w);
