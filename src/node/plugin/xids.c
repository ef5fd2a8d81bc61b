#include "node/plugin/xids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gpu/xid.h"
#include "node/worker.h"

#define LOOK_MS 200 /* whether it is to stop */

struct xids {
	struct worker worker;
	struct xid_watch *watch;
	const struct slices *slices;
	xids_handler handler;
	void *data;
	struct loop_source *source;
	int seen_fd;
	uint64_t seen[SLICES_MAX_CARDS]; /* the last of each card, under the worker's lock; 0: told */
};

static void note(struct xids *x, const struct xid_event *event)
{
	uint64_t one = 1;
	if (xid_is_programs(event->xid))
		return;
	for (unsigned i = 0; i < x->slices->card_count; i++)
		if (!strcmp(x->slices->uuid[i], event->uuid_text))
			x->seen[i] = event->xid;
	ssize_t n = write(x->seen_fd, &one, sizeof(one));
	(void)n; /* the counter can't overflow */
}

static void *run(void *data)
{
	struct xids *x = data;
	const struct timespec pause = clock_to_timespec(LOOK_MS * NSEC_PER_MSEC);
	prctl(PR_SET_NAME, "allot-xids");
	pthread_mutex_lock(&x->worker.lock);
	while (!x->worker.stop) {
		struct xid_event event;
		pthread_mutex_unlock(&x->worker.lock);
		int r = xid_watch_wait(x->watch, LOOK_MS, &event);
		/* A lost card may make every wait fail at once. */
		if (r == -EIO)
			nanosleep(&pause, NULL);
		pthread_mutex_lock(&x->worker.lock);
		if (r >= 0)
			note(x, &event);
	}
	pthread_mutex_unlock(&x->worker.lock);
	return NULL;
}

static void some_seen(void *data, uint32_t events)
{
	struct xids *x = data;
	uint64_t count, seen[SLICES_MAX_CARDS];
	if (read(x->seen_fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&x->worker.lock);
	memcpy(seen, x->seen, sizeof(seen));
	memset(x->seen, 0, sizeof(x->seen));
	pthread_mutex_unlock(&x->worker.lock);
	for (unsigned i = 0; i < x->slices->card_count; i++)
		if (seen[i])
			x->handler(x->data, i, seen[i]);
}

static void free_parts(struct xids *x)
{
	loop_remove(x->source);
	close_fd(&x->seen_fd);
	xid_watch_close(x->watch);
	free(x);
}

int xids_start(struct loop *loop, const char *library, const struct slices *slices,
	       xids_handler handler, void *data, struct xids **ret, struct error *err)
{
	struct xids *x = calloc(1, sizeof(*x));
	if (!x)
		return error_set_errno(err, ENOMEM, "Xid errors");
	*x = (struct xids){ .slices = slices, .handler = handler, .data = data };
	x->seen_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = x->seen_fd < 0 ? -errno
			       : loop_add(loop, x->seen_fd, EPOLLIN, some_seen, x, &x->source);
	if (r < 0)
		error_set_errno(err, -r, "Xid errors");
	if (r >= 0)
		r = xid_watch_open(library, &x->watch, err);
	if (r >= 0)
		r = worker_start(&x->worker, "Xid errors", run, x, err);
	if (r < 0)
		free_parts(x);
	else
		*ret = x;
	return r;
}

struct xids *xids_stop(struct xids *x)
{
	if (!x)
		return NULL;
	worker_stop(&x->worker);
	free_parts(x);
	return NULL;
}
