/*
 * The audit log's file. Lines are only ever appended, so the file may be append-only (chattr +a). A line that can't be written
 * is counted as lost. Of several failures in a row, only the first is logged. Opening never blocks, and a path that is a pipe
 * is refused at once. Use from one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct audit_file {
	const char *path; /* owned by the caller */
	/* name of the metric that counts lost lines, for log messages; owned by the caller */
	const char *counter;
	int fd;          /* -1 if the file could not be opened */
	bool is_torn;    /* the last line lacks its newline */
	bool is_failing; /* writing fails, and that was logged */
	uint64_t lines, lost;
	uint64_t unreported; /* lost lines that no line of the file reports yet */
};

/* Creates the file with mode 0600 if needed. A failure is logged, and audit_file_append() tries to open it again. */
void audit_file_open(struct audit_file *file, const char *path, const char *counter);
void audit_file_close(struct audit_file *file);
/* For logrotate, which moves the old file away. */
void audit_file_reopen(struct audit_file *file);
/* On -errno the line is lost and counted. NULL stands for a line for which memory ran out. */
int audit_file_append(struct audit_file *file, const char *line);
