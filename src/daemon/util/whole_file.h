/*
 * Files that are replaced as a whole: written as a new file and renamed over the old one. So
 * whatever happens (a reader meanwhile, a full disk, a crash), the file is either the old or the
 * new one, complete. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Replaces the file. `sync`: also waits for the disk. On -errno the old file stays. */
int whole_file_write(const char *path, const char *text, size_t size, bool sync);
/* Like whole_file_write(), for lines; an empty text removes the file. */
int whole_file_write_lines(const char *path, const char *lines, bool sync);

/*
 * Reads the file. The caller frees *ret, which ends with a NUL. Returns -ENOENT if there is none,
 * -EFBIG if it exceeds most_bytes, -EINVAL if it is not a plain file. Does not follow a symbolic
 * link.
 */
int whole_file_read(const char *path, size_t most_bytes, char **ret, size_t *ret_size);
/* Reads the file and calls take(data, line) for each line, without its newline. */
int whole_file_read_lines(const char *path, size_t most_bytes, void (*take)(void *data, char *line),
			  void *data);
