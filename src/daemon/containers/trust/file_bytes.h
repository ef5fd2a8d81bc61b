/* Reads a whole file into memory. Thread safe. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * Reads the file. The caller frees the bytes, which are followed by a NUL that `size` does not count. *ret_stat (may be NULL)
 * is the file's status from before it was read. So a later comparison with the file's status shows whether the file was written
 * after reading began. Returns -EINVAL if it is not a plain file, empty or longer than `most`, or another -errno of the system;
 * the text has the path.
 */
int file_bytes_read(const char *path, size_t most, char **ret, size_t *ret_size,
		    struct stat *ret_stat, struct error *err);
