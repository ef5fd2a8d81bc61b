/*
 * What a control daemon and its servers are doing, by /proc and by what they write: the driver tells nobody else. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPS_SERVERS_MAX 4 /* of a control daemon: one a user; more are not looked at */

struct mps_server {
	int pid;
	uint64_t start_time; /* with the pid, names it for good */
	bool is_stopped;
};

struct mps_processes {
	bool is_stopped; /* the control daemon, by a signal or a debugger */
	unsigned server_count;
	struct mps_server server[MPS_SERVERS_MAX];
};

/* Its servers are its children. Of a daemon that is gone: nothing. */
void mps_scan(int control_pid, struct mps_processes *ret);

/*
 * Nothing is left of it, or a zombie alone. One that is killed serves nobody from the moment that its main thread is a
 * zombie, and has no place in a sight any more; but what it had of the card is given back by its last thread, a while
 * later, and only then does its control daemon hear of its end.
 */
bool mps_is_over(const struct mps_server *server);

/* A line of what control daemon and servers write in the foreground. */
enum mps_line {
	MPS_LINE_OTHER,
	MPS_LINE_SERVER_READY,  /* pid */
	MPS_LINE_SERVER_QUITS,  /* pid: it was asked to */
	MPS_LINE_SERVER_ENDED,  /* pid */
	MPS_LINE_CLIENT_FAILED, /* pid: its work was thrown away for a fault of its own */
	MPS_LINE_SERVER_FAULT,  /* pid, of the server: a fault that it does not survive */
};

/* Which it is, and its process. Pure. */
enum mps_line mps_read_line(const char *line, int *ret_pid);

/* The line without what stands in "[...]" before it: for messages. */
const char *mps_line_text(const char *line);
