/* Reads the output of another program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * Runs argv[0], searched in PATH, with /dev/null as its input. Writes its output, up to size-1 bytes and a NUL, to `text`;
 * also its errors, or why it can't be executed, if `with_errors`. If limit_ms is not -1, reads for at most limit_ms, and kills
 * the program after reading. Waits for its end. *ret_status is waitpid()'s. Returns -errno if no child process can be started.
 */
int child_output(char *const argv[], bool with_errors, int limit_ms, char *text, size_t size,
		 int *ret_status, struct error *err);
