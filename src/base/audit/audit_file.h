/*
 * The file of the audit log: lines are put to its end and nothing else is ever done to it, so that it may have the attribute
 * "append only". What can't be written is counted, and said in the log once until lines go in again; nothing waits for it.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct audit_file {
	const char *path;    /* the caller's */
	const char *counter; /* the same: the metric of what is lost, to be named where it is said */
	int fd;              /* -1: it could not be opened yet, or any more */
	bool is_torn;        /* its last line has no end */
	bool is_failing;     /* and that was said */
	uint64_t lines, lost;
	uint64_t untold; /* of those lost: no line of the file tells of them yet */
};

/* Opens it, made where it is missing (0600). A failure is said, and the next line tries again. */
void audit_file_open(struct audit_file *file, const char *path, const char *counter);
void audit_file_close(struct audit_file *file);
/* Under its name there may be another file by now: logrotate moved the old one away. */
void audit_file_reopen(struct audit_file *file);
/* `line` has no end yet. -errno: it is lost, and counted. */
int audit_file_append(struct audit_file *file, const char *line);
