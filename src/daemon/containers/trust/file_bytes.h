#pragma once

#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * Reads a plain file; the caller frees the bytes, after which a NUL stands. *ret_stat (may be NULL) is the status before
 * reading, so a later comparison shows writes since. Returns -EINVAL if the file is not plain, empty or longer than `most`,
 * or another -errno. Thread safe.
 */
int file_bytes_read(const char *path, size_t most, char **ret, size_t *ret_size,
		    struct stat *ret_stat, struct error *err);
