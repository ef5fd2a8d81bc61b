/* A whole file in memory, and which file that was. Thread safe. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * The bytes are the caller's, with a NUL behind them that `size` does not count. *ret_stat (NULL: not wanted) is of the file
 * before it was read: one that is written meanwhile is seen to be another. -EINVAL: it is no file, empty, or longer than
 * `most`; others as the system said; the path is in the text.
 */
int file_bytes_read(const char *path, size_t most, char **ret, size_t *ret_size,
		    struct stat *ret_stat, struct error *err);
