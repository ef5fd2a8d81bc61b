#include "daemon/containers/claims/library_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fnv.h"
#include "base/paths.h"
#include "base/fd/write_all.h"
#include "daemon/containers/claims/container_paths.h"
#include "daemon/util/whole_file.h"

#define LIBRARY_LEAF "liballot.so"
#define PRELOAD_LEAF "ld.so.preload"
#define LIBRARY_MAX_BYTES (64 << 20)

static int write_file(const char *dir, const char *leaf, const char *bytes, size_t size,
		      mode_t mode, struct error *err)
{
	char path[PATHS_MAX];
	int r = paths_join(dir, leaf, path, sizeof(path), err);
	if (r < 0)
		return r;
	cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return error_set_errno(err, errno, "%s", path);
	r = write_all(fd, bytes, size);
	if (r < 0)
		return error_set_errno(err, -r, "%s", path);
	/* fchmod() ignores the umask: other users' programs must be able to load the file. */
	if (fchmod(fd, mode) < 0 || fsync(fd) < 0)
		return error_set_errno(err, errno, "%s", path);
	return 0;
}

static void remove_made(const char *dir)
{
	static const char *const leaves[] = { LIBRARY_LEAF, PRELOAD_LEAF };
	char path[PATHS_MAX];
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		if (paths_join(dir, leaves[i], path, sizeof(path), NULL) >= 0)
			unlink(path);
	rmdir(dir);
}

static int make(const struct library *library, const char *parent, const char *bytes, size_t size,
		struct error *err)
{
	char fresh[STATE_DIR_MAX + 32], preload[STATE_DIR_MAX], inside[PATHS_MAX];
	snprintf(fresh, sizeof(fresh), "%s/.new-XXXXXX", parent);
	if (!mkdtemp(fresh))
		return error_set_errno(err, errno, "%s", fresh);
	int n = snprintf(preload, sizeof(preload), "%s/%s/%s\n", INJECTION_LIBRARY_DIR,
			 library->name, LIBRARY_LEAF);
	int r = write_file(fresh, LIBRARY_LEAF, bytes, size, 0755, err);
	if (r >= 0)
		r = write_file(fresh, PRELOAD_LEAF, preload, (size_t)n, 0644, err);
	if (r >= 0)
		r = paths_join(fresh, LIBRARY_LEAF, inside, sizeof(inside), err);
	if (r >= 0 && (chmod(fresh, 0755) < 0 || whole_file_sync_dir(inside) < 0))
		r = error_set_errno(err, errno, "%s", fresh);
	if (r >= 0 && rename(fresh, library->dir) < 0)
		r = error_set_errno(err, errno, "%s", library->dir);
	if (r < 0) {
		remove_made(fresh);
		return r;
	}
	r = whole_file_sync_dir(library->dir);
	return r < 0 ? error_set_errno(err, -r, "%s", parent) : 0;
}

/* Returns 1 if these bytes are installed, 0 if nothing is, -EBADMSG if the installed file differs or cannot be read. */
static int check_installed(const struct library *library, const char *bytes, size_t size,
			   struct error *err)
{
	char path[STATE_DIR_MAX + LIBRARY_NAME_MAX + 32];
	cleanup_free char *there = NULL;
	size_t there_size = 0;
	if (access(library->dir, F_OK) < 0)
		return errno == ENOENT ? 0 : error_set_errno(err, errno, "%s", library->dir);
	snprintf(path, sizeof(path), "%s/%s", library->dir, LIBRARY_LEAF);
	int r = whole_file_read_foreign(path, LIBRARY_MAX_BYTES, &there, &there_size, NULL, err);
	if (r < 0 || there_size != size || memcmp(there, bytes, size) != 0)
		return error_set(err, EBADMSG,
				 "%s: is not the file that allotd installed: remove its "
				 "directory, and allotd installs it again",
				 path);
	return 1;
}

static int check_exec(const char *dir, struct error *err)
{
	struct statvfs fs;
	if (statvfs(dir, &fs) < 0)
		return error_set_errno(err, errno, "%s", dir);
	if (fs.f_flag & ST_NOEXEC)
		return error_set(err, EACCES,
				 "%s: mounted noexec, so that no library can be loaded from there: "
				 "set state_dir to a directory on another file system",
				 dir);
	return 0;
}

int library_install(const char *from, const char *state_dir, struct library *ret, struct error *err)
{
	struct library library;
	char parent[STATE_DIR_MAX + 8];
	cleanup_free char *bytes = NULL;
	size_t size = 0;
	int r = whole_file_read_foreign(from, LIBRARY_MAX_BYTES, &bytes, &size, NULL, err);
	if (r < 0)
		return r;
	snprintf(parent, sizeof(parent), "%s/lib", state_dir);
	/*
	 * The hash tells builds apart. Deliberate collisions do not matter: only the daemon's user can write to the state
	 * directory. The preload file contains the library's path in the container, so the hash includes this path.
	 */
	uint64_t h = fnv64(fnv64(FNV64_BEGIN, bytes, size), INJECTION_LIBRARY_DIR,
			   strlen(INJECTION_LIBRARY_DIR));
	snprintf(library.name, sizeof(library.name), "%.40s-%016" PRIx64, ALLOT_VERSION, h);
	snprintf(library.dir, sizeof(library.dir), "%s/%s", parent, library.name);
	if (mkdir(parent, 0755) < 0 && errno != EEXIST)
		return error_set_errno(err, errno, "%s", parent);
	if (chmod(parent, 0755) < 0)
		return error_set_errno(err, errno, "%s", parent);
	r = check_exec(parent, err);
	if (r >= 0)
		r = check_installed(&library, bytes, size, err);
	if (r == 0)
		r = make(&library, parent, bytes, size, err);
	if (r < 0)
		return r;
	*ret = library;
	return 0;
}
