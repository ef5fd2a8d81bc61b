/*
 * The machine that is looked at: its files, below a directory that is "/" unless the machine's root is mounted elsewhere
 * (in a container, or a test). Thread safe; paths are full ones, of the machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct host {
	const char *root; /* "" or a directory, without a slash at its end */
};

/* This machine's running system is what it looks at: processes, limits and programs tell too. */
bool host_is_here(const struct host *host);

/* Where the path is for us. */
void host_path(const struct host *host, const char *path, char *ret, size_t size);
bool host_has(const struct host *host, const char *path);
/* The first size-1 bytes of the file, NUL behind them. Returns how many, or -errno. */
long host_read(const struct host *host, const char *path, char *text, size_t size);
/* All of the file, the caller's, NUL behind it; NULL: not there, or of more than 64 MiB. */
char *host_read_all(const struct host *host, const char *path, size_t *ret_size);
/* Where a symlink of the machine leads at last, as a path of the machine; a path without links as it is. */
void host_resolve(const struct host *host, const char *path, char *ret, size_t size);

/*
 * Calls visit with the name of each entry but "." and ".."; a folder that is not there has none. False from it ends
 * that.
 */
void host_each(const struct host *host, const char *directory,
	       bool (*visit)(void *data, const char *name), void *data);
