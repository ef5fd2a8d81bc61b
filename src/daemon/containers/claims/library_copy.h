/*
 * The copy of liballot.so that containers get: <state dir>/lib/<version>-<hash>/, named by its
 * contents. Beside it is the ld.so.preload file that loads it. The directory is made under a
 * temporary name, renamed when complete, and never changed again. So a container that its engine
 * restarts years later with its original mounts finds its original library. Directories of old
 * versions may be deleted when no container uses them. Main thread only.
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
 * Copies the file `from` into the state directory, which must exist, unless the copy is there
 * already. Returns -EACCES if libraries cannot be loaded from that file system (noexec), -EBADMSG
 * if the existing copy differs, -ENOENT or another -errno.
 */
int library_install(const char *from, const char *state_dir, struct library *ret, struct error *err);
