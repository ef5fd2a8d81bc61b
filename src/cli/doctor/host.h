/*
 * The machine that doctor examines. Its files are below `root`: "" for this machine, or a directory where another machine's
 * root is mounted (in a container, in a test). Paths are absolute paths of that machine. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct host {
	const char *root; /* without a slash at its end */
};

/* Whether `host` is the machine that this program runs on. Only there can processes, limits and programs be examined. */
bool host_is_local(const struct host *host);

/* Writes the path by which this program can open the machine's `path`. Does not resolve links. */
void host_path(const struct host *host, const char *path, char *ret, size_t size);
bool host_has(const struct host *host, const char *path);
/* Whether the machine surely lacks the file. host_has() is also false if this user may not search a directory of the path. */
bool host_lacks(const struct host *host, const char *path);
/* Reads the first size-1 bytes of the file and adds a NUL. Returns the number of bytes, or -errno. */
long host_read(const struct host *host, const char *path, char *text, size_t size);
/* Reads the whole file and adds a NUL; the caller frees it. NULL if it can't be read, or has more than 64 MiB. */
char *host_read_all(const struct host *host, const char *path, size_t *ret_size);
/* Resolves all symlinks of the path and writes the result, as a path of the machine. */
void host_resolve(const struct host *host, const char *path, char *ret, size_t size);

/* Calls `visit` for each entry but "." and "..", until it returns false. A missing directory has no entries. */
void host_each(const struct host *host, const char *directory,
	       bool (*visit)(void *data, const char *name), void *data);
