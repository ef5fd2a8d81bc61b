/*
 * The event loop of the main thread: file descriptors and timers, one handler each, over epoll.
 * One thread. A handler may remove any source, its own too.
 */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

#include "base/error.h"

struct loop;
struct loop_source;

/* `events`: EPOLLIN | ... as seen; for a timer, EPOLLIN. */
typedef void (*loop_handler)(void *data, uint32_t events);

int loop_new(struct loop **ret, struct error *err);
struct loop *loop_free(struct loop *loop); /* sources must be gone; NULL is fine; returns NULL */

/* Watches fd (which stays the caller's). -errno when the kernel refuses. */
int loop_add(struct loop *loop, int fd, uint32_t events, loop_handler handler, void *data,
	     struct loop_source **ret);
/* Which events to watch from now on; 0: none but EPOLLERR and EPOLLHUP. */
int loop_watch(struct loop_source *source, uint32_t events);

/* A timer, off at first. */
int loop_add_timer(struct loop *loop, loop_handler handler, void *data, struct loop_source **ret);
/* First after in_ns (0: now), then each interval_ns (0: once). */
void loop_arm(struct loop_source *timer, uint64_t in_ns, uint64_t interval_ns);
void loop_disarm(struct loop_source *timer);

/* Stops watching and forgets the source (a timer's descriptor is closed). NULL is fine. */
struct loop_source *loop_remove(struct loop_source *source);

/* Handles what is ready, waiting at most timeout_ms (-1: for ever). 0, or -errno. */
int loop_step(struct loop *loop, int timeout_ms);
/* Steps until loop_quit(). */
int loop_run(struct loop *loop);
void loop_quit(struct loop *loop);
