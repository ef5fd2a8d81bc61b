/* Writes lines of an audit log (allot-audit(5)). Use from the thread that uses the audit_file. */
#pragma once

#include <jansson.h>

#include "base/audit/audit_file.h"

/*
 * Writes one line about `event`. Takes ownership of `by` (who caused the event) and `what` (an object with the line's other
 * members). If one of these is NULL, because memory ran out, the line counts as lost. If earlier lines were lost, first writes
 * a line that tells how many; its `by` is {"kind": own}. `own` names the calling program, such as "daemon".
 */
void audit_line_write(struct audit_file *file, const char *own, const char *event, json_t *by,
		      json_t *what);
