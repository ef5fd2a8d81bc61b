/* Lines of an audit log (allot-audit(5)), for every program. Use from the one thread that uses the audit_file. */
#pragma once

#include <jansson.h>

#include "base/audit/audit_file.h"

/*
 * Writes one line and takes ownership of `by` (who did it) and `what` (an object with the rest of the line). NULL for one of
 * them means that memory ran out; then the line counts as lost. If earlier lines were lost, first writes a line that tells how
 * many. That line has {"kind": own} as its `by`, because this program wrote it.
 */
void audit_line_write(struct audit_file *file, const char *own, const char *event, json_t *by,
		      json_t *what);
