/*
 * liballot.so where containers have it from: <state dir>/lib/<version>-<hash>/, named by what is in it, beside
 * the ld.so.preload that leads to it. Made whole and then renamed; nobody writes there again, so that
 * a container, started again by its engine years later with the mounts of its first start, finds what it had.
 * Directories of old versions may be deleted when no container was started with them. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/containers/claims/state_dir.h"

#define LIBRARY_NAME_MAX 64

struct library {
	char name[LIBRARY_NAME_MAX]; /* "0.1.0-0123456789abcdef" */
	char dir[STATE_DIR_MAX + LIBRARY_NAME_MAX + 8];
};

/*
 * Puts a copy of `from` (a path) below the state directory, which is there, unless one is there. -EACCES: libraries
 * can't be loaded from that file system (noexec); -EBADMSG: the copy there is another; -ENOENT and others.
 */
int library_install(const char *from, const char *state_dir, struct library *ret, struct error *err);
