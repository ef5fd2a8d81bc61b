/*
 * A thread of the daemon with the lock of what it shares: started and ended in one way.
 *
 *     run():  with the lock held, until `stop`: waits for `wake` as it likes
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* by the monotonic clock */
	bool stop;           /* under the lock: run() is to return */
};

/* Starts run(data); `what` is for the error. On error, -errno, there is nothing to end. */
int worker_start(struct worker *w, const char *what, void *(*run)(void *), void *data,
		 struct error *err);
/* Says stop, and signals `wake`; who sleeps elsewhere is to be woken then. */
void worker_say_stop(struct worker *w);
/* Waits until run() has returned; nothing of *w may be used then. */
void worker_join(struct worker *w);
/* Both. */
void worker_stop(struct worker *w);
