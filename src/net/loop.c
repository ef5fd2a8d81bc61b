#include "net/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LOOP_BATCH 64

struct loop {
	int epoll_fd;
	bool quit;
	struct loop_source *removed; /* freed after the current events, which may refer to them */
};

struct loop_source {
	struct loop *loop;
	int fd;
	bool is_timer;
	bool dead;
	loop_handler handler;
	void *data;
	struct loop_source *next_removed;
};

int loop_new(struct loop **ret, struct error *err)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	if (!loop)
		return error_set_errno(err, ENOMEM, "event loop");
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		int e = errno;
		free(loop);
		return error_set_errno(err, e, "epoll");
	}
	*ret = loop;
	return 0;
}

static void free_removed(struct loop *loop)
{
	while (loop->removed) {
		struct loop_source *source = loop->removed;
		loop->removed = source->next_removed;
		free(source);
	}
}

struct loop *loop_free(struct loop *loop)
{
	if (!loop)
		return NULL;
	free_removed(loop);
	close(loop->epoll_fd);
	free(loop);
	return NULL;
}

int loop_add(struct loop *loop, int fd, uint32_t events, loop_handler handler, void *data,
	     struct loop_source **ret)
{
	struct loop_source *source = calloc(1, sizeof(*source));
	if (!source)
		return -ENOMEM;
	*source = (struct loop_source){ .loop = loop, .fd = fd, .handler = handler, .data = data };
	struct epoll_event event = { .events = events, .data.ptr = source };
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		int e = errno;
		free(source);
		return -e;
	}
	*ret = source;
	return 0;
}

int loop_watch(struct loop_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };
	return epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) < 0 ? -errno : 0;
}

int loop_add_timer(struct loop *loop, loop_handler handler, void *data, struct loop_source **ret)
{
	cleanup_fd int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	struct loop_source *source;
	int r = loop_add(loop, fd, EPOLLIN, handler, data, &source);
	if (r < 0)
		return r;
	source->is_timer = true;
	steal_fd(&fd);
	*ret = source;
	return 0;
}

static void set_timer(struct loop_source *timer, struct timespec first, struct timespec interval)
{
	struct itimerspec spec = { .it_value = first, .it_interval = interval };
	timerfd_settime(timer->fd, 0, &spec, NULL);
}

void loop_arm(struct loop_source *timer, uint64_t in_ns, uint64_t interval_ns)
{
	/* 0 would disarm the timer. */
	set_timer(timer, clock_to_timespec(in_ns ? in_ns : 1), clock_to_timespec(interval_ns));
}

void loop_disarm(struct loop_source *timer)
{
	set_timer(timer, (struct timespec){ 0 }, (struct timespec){ 0 });
}

struct loop_source *loop_remove(struct loop_source *source)
{
	if (!source || source->dead)
		return NULL;
	epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	if (source->is_timer)
		close(source->fd);
	source->dead = true;
	source->next_removed = source->loop->removed;
	source->loop->removed = source;
	return NULL;
}

int loop_step(struct loop *loop, int timeout_ms)
{
	struct epoll_event event[LOOP_BATCH];
	int n = epoll_wait(loop->epoll_fd, event, LOOP_BATCH, timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		struct loop_source *source = event[i].data.ptr;
		uint64_t expirations;
		if (source->dead)
			continue;
		/* If nothing can be read, the timer was disarmed or armed again after it became readable, so it is not due. */
		if (source->is_timer && read(source->fd, &expirations, sizeof(expirations)) < 0)
			continue;
		source->handler(source->data, event[i].events);
	}
	free_removed(loop);
	return 0;
}

int loop_run(struct loop *loop)
{
	loop->quit = false;
	while (!loop->quit) {
		int r = loop_step(loop, -1);
		if (r < 0)
			return r;
	}
	return 0;
}

void loop_quit(struct loop *loop)
{
	loop->quit = true;
}
