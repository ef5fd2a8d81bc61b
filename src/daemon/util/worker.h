/*
 * A worker is a thread of the daemon with a lock for the data that it shares. The thread's function run() takes the lock, waits
 * for `wake` as needed, and returns when `stop` is set.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* uses the monotonic clock */
	bool stop;           /* guarded by `lock`; tells run() to return */
	int stop_fd; /* becomes readable when `stop` is set; for a run() that polls other descriptors */
};

/* Starts run(data). `what` names the thread in an error. */
int worker_start(struct worker *w, const char *what, void *(*run)(void *), void *data,
		 struct error *err);
/*
 * Sets `stop`, and signals `wake` and stop_fd, but does not wait for the end. If run() can sleep on anything else, the caller
 * must end that sleep too.
 */
void worker_request_stop(struct worker *w);
/* Waits until run() has returned. *w must not be used afterwards. */
void worker_join(struct worker *w);
void worker_stop(struct worker *w);
