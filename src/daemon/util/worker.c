#include "daemon/util/worker.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/cleanup.h"

static void free_parts(struct worker *w)
{
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	close_fd(&w->stop_fd);
}

int worker_start(struct worker *w, const char *what, void *(*run)(void *), void *data,
		 struct error *err)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&w->lock, NULL);
	w->stop = false;
	w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int e = w->stop_fd < 0 ? errno : pthread_create(&w->thread, NULL, run, data);
	if (e) {
		free_parts(w);
		return error_set_errno(err, e, "can't start the %s thread", what);
	}
	return 0;
}

void worker_request_stop(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	eventfd_write(w->stop_fd, 1);
}

void worker_join(struct worker *w)
{
	pthread_join(w->thread, NULL);
	free_parts(w);
}

void worker_stop(struct worker *w)
{
	worker_request_stop(w);
	worker_join(w);
}
