/*
 * Descriptors and alarms behind one descriptor. The owner of an event loop watches that one for EPOLLIN, and
 * then calls reactor_process(), which never waits. One thread; a handler may remove anything, itself too.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

struct reactor;

/* `events`: EPOLLIN | ... as seen. */
typedef void (*reactor_handler)(void *data, int fd, uint32_t events);

int reactor_new(struct reactor **ret);
struct reactor *reactor_free(struct reactor *reactor); /* NULL is fine; returns NULL */
int reactor_fd(const struct reactor *reactor);
void reactor_process(struct reactor *reactor);

/* From now on `events` of fd (0: none at all) go to the handler, the same for all descriptors. */
void reactor_on_ready(struct reactor *reactor, reactor_handler handler, void *data);
int reactor_watch(struct reactor *reactor, int fd, uint32_t events);

/* An alarm of the caller's, zero but for `ring` and `data` before it is set first. */
struct alarm {
	void (*ring)(void *data);
	void *data;
	uint64_t due_ns; /* by the monotonic clock; 0: not set */
	TAILQ_ENTRY(alarm) link;
};
void alarm_set(struct reactor *reactor, struct alarm *alarm, uint64_t in_ns);
void alarm_clear(struct reactor *reactor, struct alarm *alarm);
