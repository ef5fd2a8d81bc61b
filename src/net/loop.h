/*
 * An event loop over epoll: file descriptors and timers, with one handler each. Use from one thread. A handler may remove any
 * source, including its own.
 */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

#include "base/error.h"

struct loop;
struct loop_source;

/* `events` has the bits that occurred, such as EPOLLIN; for a timer, EPOLLIN. */
typedef void (*loop_handler)(void *data, uint32_t events);

int loop_new(struct loop **ret, struct error *err);
/* Remove all sources first. NULL is allowed; returns NULL. */
struct loop *loop_free(struct loop *loop);

/* Watches fd, which the caller still owns. */
int loop_add(struct loop *loop, int fd, uint32_t events, loop_handler handler, void *data,
	     struct loop_source **ret);
/* Sets which events to watch from now on; with 0, only EPOLLERR and EPOLLHUP. */
int loop_watch(struct loop_source *source, uint32_t events);

/* The timer is initially off. */
int loop_add_timer(struct loop *loop, loop_handler handler, void *data, struct loop_source **ret);
/* The handler is called after in_ns (0: at once), then each interval_ns (0: only once). Replaces an earlier setting. */
void loop_arm(struct loop_source *timer, uint64_t in_ns, uint64_t interval_ns);
void loop_disarm(struct loop_source *timer);

/* Stops watching and frees the source. Closes a timer's descriptor, but no other. NULL is allowed; returns NULL. */
struct loop_source *loop_remove(struct loop_source *source);

/* Handles the sources that are ready, after waiting at most timeout_ms for one (-1: forever). Returns 0 or -errno. */
int loop_step(struct loop *loop, int timeout_ms);
int loop_run(struct loop *loop);
void loop_quit(struct loop *loop);
