/*
 * Makes the copy of liballot.so that containers get, in <state dir>/lib/<version>-<hash>/, and the ld.so.preload file that
 * loads it. The directory is made under a temporary name, renamed when complete, and never changed, so a container restarted
 * years later finds its original library. Unused directories of old versions may be deleted. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/containers/claims/state_dir.h"

#define LIBRARY_NAME_MAX 64

struct library {
	char name[LIBRARY_NAME_MAX]; /* like "0.1.0-0123456789abcdef" */
	char dir[STATE_DIR_MAX + LIBRARY_NAME_MAX + 8];
};

/*
 * Copies the file `from` into the existing state directory, unless it is there already. Returns -EACCES if that file system is
 * noexec, -EBADMSG if an existing copy differs, -ENOENT or another -errno.
 */
int library_install(const char *from, const char *state_dir, struct library *ret, struct error *err);
