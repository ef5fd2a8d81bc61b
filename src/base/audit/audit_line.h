/*
 * A line of an audit log (allot-audit(5)): when, what and by whom, whichever program's it is. The thread of the file.
 */
#pragma once

#include <jansson.h>

#include "base/audit/audit_file.h"

/*
 * `by` and `what` are taken: who did it, and an object with the rest of the line (NULL: nothing, or no memory). Where lines before it
 * could not be written, one that says how many goes before it, by the program itself: `own`, as a kind.
 */
void audit_line_write(struct audit_file *file, const char *own, const char *event, json_t *by,
		      json_t *what);
