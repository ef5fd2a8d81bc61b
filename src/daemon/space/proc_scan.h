/*
 * Reads the state of an MPS control daemon and its servers (group.h) from /proc and their log, because the driver reports it
 * nowhere else. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPS_SERVERS_MAX 4 /* a control daemon has one server per user; more are ignored */

struct mps_server {
	int pid;
	uint64_t start_time; /* with the pid, identifies the process */
	bool is_stopped;
};

struct mps_processes {
	bool is_stopped; /* the control daemon is stopped, by a signal or a debugger */
	unsigned server_count;
	struct mps_server server[MPS_SERVERS_MAX];
};

/* Scans a control daemon and its servers, which are its children. *ret is empty if the control daemon is gone. */
void mps_scan(int control_pid, struct mps_processes *ret);

/*
 * Returns true if the server has ended, or only a zombie without other threads is left. A killed server becomes a zombie,
 * which mps_scan() no longer lists, when its main thread ends. Its last thread ends later, after it has freed memory on the
 * card, and only then does the control daemon notice.
 */
bool mps_is_over(const struct mps_server *server);

/* Kinds of log lines; "with pid": the line names a process. */
enum mps_line {
	MPS_LINE_OTHER,
	MPS_LINE_SERVER_QUITS,  /* with pid: the server was asked to quit */
	MPS_LINE_SERVER_ENDED,  /* with pid */
	MPS_LINE_CLIENT_FAILED, /* with pid: work was discarded because of the client's own fault */
	/* with the server's pid: a fault that the server does not survive */
	MPS_LINE_SERVER_FAULT,
};

/* Returns the kind of a log line, and the process that it names. Pure. */
enum mps_line mps_read_line(const char *line, int *ret_pid);

/* Returns the log line without its "[...]" prefix. */
const char *mps_line_text(const char *line);
