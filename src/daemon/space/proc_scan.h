/*
 * Reads the state of a control daemon and its servers from /proc and from their log, because the
 * driver offers no other source. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPS_SERVERS_MAX \
	4 /* most servers per control daemon; it has one per user, and further ones are ignored */

struct mps_server {
	int pid;
	uint64_t start_time; /* identifies the process together with the pid */
	bool is_stopped;
};

struct mps_processes {
	bool is_stopped; /* the control daemon is stopped, by a signal or a debugger */
	unsigned server_count;
	struct mps_server server[MPS_SERVERS_MAX];
};

/*
 * Scans a control daemon and its servers, which are its children. If the control daemon is gone,
 * *ret is empty.
 */
void mps_scan(int control_pid, struct mps_processes *ret);

/*
 * Whether nothing is left of the server but perhaps a zombie without other threads. A killed server
 * stops serving when its main thread becomes a zombie, and mps_scan() no longer lists it. But its
 * last thread frees its memory on the card a while later, and only then does the control daemon
 * notice the end.
 */
bool mps_is_over(const struct mps_server *server);

/*
 * Kinds of lines in the log of a control daemon (run in the foreground) and its servers. "With
 * pid": the line names a process.
 */
enum mps_line {
	MPS_LINE_OTHER,
	MPS_LINE_SERVER_READY,  /* with pid */
	MPS_LINE_SERVER_QUITS,  /* with pid: the server was asked to quit */
	MPS_LINE_SERVER_ENDED,  /* with pid */
	MPS_LINE_CLIENT_FAILED, /* with pid: work was discarded because of the client's own fault */
	/* with the server's pid: a fault that the server does not survive */
	MPS_LINE_SERVER_FAULT,
};

/* Returns the kind of a log line, and the process that it names. Pure. */
enum mps_line mps_read_line(const char *line, int *ret_pid);

/* Returns the log line without its "[...]" prefix, for messages. */
const char *mps_line_text(const char *line);
