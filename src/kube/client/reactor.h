/*
 * Watches several descriptors and alarms behind one descriptor. The owner's event loop watches that one descriptor for EPOLLIN
 * and then calls reactor_process(), which never waits. Use from one thread. A handler may remove any descriptor and alarm,
 * including its own.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

struct reactor;

typedef void (*reactor_handler)(void *data, int fd, uint32_t events);

int reactor_new(struct reactor **ret);
struct reactor *reactor_free(struct reactor *reactor); /* NULL is allowed; returns NULL */
int reactor_fd(const struct reactor *reactor);
void reactor_process(struct reactor *reactor);

/* One handler gets the events of all descriptors. reactor_watch() sets which events of fd are watched; 0: none. */
void reactor_on_ready(struct reactor *reactor, reactor_handler handler, void *data);
int reactor_watch(struct reactor *reactor, int fd, uint32_t events);

/* Owned by the caller. Set `handler` and `data`, and zero the rest, before the first alarm_set(). */
struct alarm {
	void (*handler)(void *data);
	void *data;
	uint64_t due_ns; /* monotonic time; 0 if not set */
	TAILQ_ENTRY(alarm) link;
};
void alarm_set(struct reactor *reactor, struct alarm *alarm, uint64_t in_ns);
void alarm_clear(struct reactor *reactor, struct alarm *alarm);
