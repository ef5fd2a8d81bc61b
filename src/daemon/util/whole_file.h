/*
 * Files that are replaced as a whole: a new file is renamed over the old one, so a crash or a full disk never leaves a partly
 * written file. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * Replaces the file. With `sync`, returns only when the text is on the disk. If it fails (-errno), the old file stays. Only if
 * the disk fails while the directory is synced, the old file may be back after a power cut, although the result is 0.
 */
int whole_file_write(const char *path, const char *text, size_t size, bool sync);
/* Like whole_file_write(), but removes the file if `lines` is "". */
int whole_file_write_lines(const char *path, const char *lines, bool sync);
/* Syncs the directory that contains `path`, after a file in it was renamed or removed. Returns 0 or -errno. */
int whole_file_sync_dir(const char *path);

/*
 * Reads the file. The caller frees *ret, which ends with a NUL. Returns -ENOENT if there is no file, -EFBIG if it exceeds
 * most_bytes, -EINVAL if it is not a plain file. Does not follow a symbolic link.
 */
int whole_file_read(const char *path, size_t most_bytes, char **ret, size_t *ret_size);
/*
 * Reads a file that another program writes; follows symbolic links. *ret_stat (may be NULL) is the file's status from before the
 * read. The file is unchanged while its status stays equal; only a write within the same tick of the kernel's clock can go
 * unnoticed. Returns -EINVAL also if the file is empty or exceeds most_bytes, and -EIO if it shrinks meanwhile.
 */
int whole_file_read_foreign(const char *path, size_t most_bytes, char **ret, size_t *ret_size,
			    struct stat *ret_stat, struct error *err);
/* Reads the file like whole_file_read(), and calls take(data, line) for each line that is not empty, without its newline. */
int whole_file_read_lines(const char *path, size_t most_bytes, void (*take)(void *data, char *line),
			  void *data);
