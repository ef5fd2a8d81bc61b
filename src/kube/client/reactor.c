#include "kube/client/reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define REACTOR_BATCH 16

struct reactor {
	int epoll_fd, timer_fd;
	reactor_handler handler;
	void *data;
	TAILQ_HEAD(, alarm) alarms;
};

int reactor_new(struct reactor **ret)
{
	struct reactor *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	TAILQ_INIT(&r->alarms);
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int e = r->epoll_fd < 0 || r->timer_fd < 0 ? -errno : reactor_watch(r, r->timer_fd, EPOLLIN);
	if (e < 0) {
		reactor_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

struct reactor *reactor_free(struct reactor *r)
{
	if (!r)
		return NULL;
	close_fd(&r->epoll_fd);
	close_fd(&r->timer_fd);
	free(r);
	return NULL;
}

int reactor_fd(const struct reactor *r)
{
	return r->epoll_fd;
}

void reactor_on_ready(struct reactor *r, reactor_handler handler, void *data)
{
	r->handler = handler;
	r->data = data;
}

int reactor_watch(struct reactor *r, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };
	if (!events)
		return epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0 ? -errno : 0;
	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static struct alarm *first_due(struct reactor *r)
{
	struct alarm *alarm, *first = NULL;
	TAILQ_FOREACH(alarm, &r->alarms, link)
		if (!first || alarm->due_ns < first->due_ns)
			first = alarm;
	return first;
}

static void arm_timer(struct reactor *r)
{
	const struct alarm *first = first_due(r);
	struct itimerspec spec = { .it_value = clock_to_timespec(first ? first->due_ns : 0) };
	timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

void alarm_clear(struct reactor *r, struct alarm *alarm)
{
	if (!alarm->due_ns)
		return;
	alarm->due_ns = 0;
	TAILQ_REMOVE(&r->alarms, alarm, link);
	arm_timer(r);
}

void alarm_set(struct reactor *r, struct alarm *alarm, uint64_t in_ns)
{
	if (alarm->due_ns)
		TAILQ_REMOVE(&r->alarms, alarm, link);
	alarm->due_ns = clock_now_ns() + in_ns;
	TAILQ_INSERT_TAIL(&r->alarms, alarm, link);
	arm_timer(r);
}

static void ring_due(struct reactor *r)
{
	uint64_t expirations, now_ns = clock_now_ns();
	struct alarm *alarm;
	if (read(r->timer_fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
		return;
	/* The loop ends: if a handler sets its alarm again, the alarm is due later than now_ns. */
	while ((alarm = first_due(r)) && alarm->due_ns <= now_ns) {
		alarm_clear(r, alarm);
		alarm->handler(alarm->data);
	}
	arm_timer(r);
}

void reactor_process(struct reactor *r)
{
	struct epoll_event event[REACTOR_BATCH];
	int n = epoll_wait(r->epoll_fd, event, REACTOR_BATCH, 0);
	for (int i = 0; i < n; i++) {
		if (event[i].data.fd == r->timer_fd)
			ring_due(r);
		else if (r->handler)
			r->handler(r->data, event[i].data.fd, event[i].events);
	}
}
