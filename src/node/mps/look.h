/*
 * What a control daemon and its servers are doing, by /proc and by what they write: the driver tells nobody else. Any
 * thread.
 */
#ifndef ALLOT_NODE_MPS_LOOK_H
#define ALLOT_NODE_MPS_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#define MPS_SERVERS_MAX 4 /* of a control daemon: one a user; more are not looked at */

struct mps_sight {
	bool is_stopped; /* the control daemon, by a signal or a debugger */
	unsigned server_count;
	struct {
		int pid;
		bool is_stopped;
	} server[MPS_SERVERS_MAX];
};

/* Its servers are its children. Of a daemon that is gone: nothing. */
void mps_look(int control_pid, struct mps_sight *ret);

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

#endif
