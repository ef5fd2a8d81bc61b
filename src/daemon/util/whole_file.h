/*
 * Files that are replaced as a whole: written beside the old one and renamed over it, so that a reader, a full disk and a
 * crash have the old or the new. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Replaces the file. `sync`: and waits for the disk. -errno leaves the old file in force. */
int whole_file_write(const char *path, const char *text, size_t size, bool sync);
/* The same of lines; "" removes the file. */
int whole_file_write_lines(const char *path, const char *lines, bool sync);

/*
 * Reads the file. *ret is the caller's and ends with a NUL. -ENOENT: there is none; -EFBIG: it has more than most_bytes;
 * -EINVAL: it is no plain file. Does not follow a symbolic link.
 */
int whole_file_read(const char *path, size_t most_bytes, char **ret, size_t *ret_size);
/* The same, and calls take(data, line) for each line, without its end. */
int whole_file_read_lines(const char *path, size_t most_bytes, void (*take)(void *data, char *line),
			  void *data);
