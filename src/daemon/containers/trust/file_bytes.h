#pragma once

#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * Reads a plain file. The caller frees the bytes, which are followed by a NUL. *ret_stat (may be NULL) is the file's status
 * from before the read. The file is unchanged while its status stays equal; only a write within the same tick of the kernel's
 * clock can go unnoticed. Returns -EINVAL if the file is not plain, is empty, or has more than `most` bytes; or another -errno.
 * Thread safe.
 */
int file_bytes_read(const char *path, size_t most, char **ret, size_t *ret_size,
		    struct stat *ret_stat, struct error *err);
