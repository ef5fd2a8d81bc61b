/* Lines of an audit log (allot-audit(5)), for every program. Use from the file's thread. */
#pragma once

#include <jansson.h>

#include "base/audit/audit_file.h"

/*
 * Writes one line and takes over `by` (who did it) and `what` (an object with the rest of the line; NULL if there is nothing,
 * or out of memory). If earlier lines were lost, first writes a line with their number, in the name of the program itself,
 * whose kind is `own`.
 */
void audit_line_write(struct audit_file *file, const char *own, const char *event, json_t *by,
		      json_t *what);
