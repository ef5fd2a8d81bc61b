#include "mirror/execute.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/fd/write_all.h"
#include "mirror/shim.h"

#define RECORD "versions"
#define COPY_SIZE 65536

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static int copy_bytes(int from, int to)
{
	char buffer[COPY_SIZE];
	ssize_t n;

	while ((n = read(from, buffer, sizeof(buffer))) != 0) {
		int r = n > 0 ? write_all(to, buffer, (size_t)n) : errno == EINTR ? 0 : -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

static int copy_file(const char *from, const char *to, struct error *err)
{
	cleanup_fd int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
	struct stat st;

	if (in < 0 || fstat(in, &st) < 0)
		return error_set_errno(err, errno, "%s", from);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return error_set_errno(err, errno, "%s", to);
	int r = copy_bytes(in, out);
	/* Drop set-user-id bits, because containers have the copy in their search path. */
	if (r == 0 && (fchmod(out, st.st_mode & 0755) < 0 || fsync(out) < 0))
		r = -errno;
	return r < 0 ? error_set_errno(err, -r, "copy %s to %s", from, to) : 0;
}

static int place_file(const char *from, const char *to, struct error *err)
{
	struct stat st;
	bool is_plain = stat(from, &st) == 0 && !(st.st_mode & (S_ISUID | S_ISGID));

	/* A hard link fails across file systems, if the kernel forbids it, or if the file has too many links. */
	if (is_plain && link(from, to) == 0)
		return 0;
	return copy_file(from, to, err);
}

/* The shim's SONAME differs from the driver's: shim.h says why. */
static int place_shim(const struct mirror_action *action, const char *to, struct error *err)
{
	const char *needed[2] = { "liballot.so", action->from };
	uint8_t bytes[SHIM_SIZE_MAX];
	char soname[300];

	snprintf(soname, sizeof(soname), "liballot-shim-%.200s", strrchr(action->to, '/') + 1);
	size_t size = shim_make(action->machine, soname, needed, bytes);
	if (!size)
		return error_set(err, ENAMETOOLONG, "%s: this file's name is too long",
				 action->from);
	cleanup_fd int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : write_all(fd, bytes, size);
	if (r == 0 && (fchmod(fd, 0755) < 0 || fsync(fd) < 0))
		r = -errno;
	return r < 0 ? error_set_errno(err, -r, "%s", to) : 0;
}

static int perform(const struct mirror_action *action, const char *dir, struct error *err)
{
	char to[PATHS_MAX];
	int r = paths_join(dir, action->to, to, sizeof(to), err);

	if (r < 0)
		return r;
	switch (action->kind) {
	case MIRROR_FILE: return place_file(action->from, to, err);
	case MIRROR_SHIM: return place_shim(action, to, err);
	case MIRROR_LINK:
		return symlink(action->from, to) < 0 ? error_set_errno(err, errno, "%s", to) : 0;
	}
	return 0;
}

/* For make_record(), in enough detail to notice a change. */
static json_t *describe(const struct mirror_action *action)
{
	struct stat st = { 0 };

	if (action->kind != MIRROR_FILE)
		return json_pack("{s:s}", action->kind == MIRROR_LINK ? "link" : "shim",
				 action->from);
	stat(action->from, &st);
	return json_pack("{s:s, s:s, s:I, s:f}", "from", action->from, "version",
			 mirror_version(strrchr(action->from, '/') + 1), "bytes",
			 (json_int_t)st.st_size, "changed_s",
			 (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9);
}

/* Returns the text of RECORD, the file that says what the mirror was made from. NULL if out of memory. The caller frees it. */
static char *make_record(const struct mirror_plan *plan)
{
	json_t *files = json_object();
	json_t *record = json_pack("{s:i, s:s, s:s, s:o}", "version", 1, "driver", plan->driver,
				   "allot", ALLOT_VERSION, "files", files);

	for (size_t i = 0; record && i < plan->count; i++)
		json_object_set_new(files, plan->action[i].to, describe(&plan->action[i]));
	char *text = record ? json_dumps(record, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
	json_decref(record);
	return text;
}

static int write_record(const char *dir, const char *record, struct error *err)
{
	char path[PATHS_MAX];
	int r = paths_join(dir, RECORD, path, sizeof(path), err);

	if (r < 0)
		return r;
	cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	r = fd < 0 ? -errno : write_all(fd, record, strlen(record));
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? error_set_errno(err, -r, "%s", path) : 0;
}

static int write_mirror(const struct mirror_plan *plan, const char *dir, const char *record,
			struct error *err)
{
	static const char *const folders[] = { "bin", "lib", "lib64" };
	char path[PATHS_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
		r = paths_join(dir, folders[i], path, sizeof(path), err);
		if (r == 0 && mkdir(path, 0755) < 0)
			r = error_set_errno(err, errno, "%s", path);
	}
	for (size_t i = 0; r == 0 && i < plan->count; i++)
		r = perform(&plan->action[i], dir, err);
	return r < 0 ? r : write_record(dir, record, err);
}

static bool is_absent_or_empty(const char *place)
{
	struct stat st;

	if (lstat(place, &st) < 0)
		return errno == ENOENT;
	/* A symbolic link does not count as an empty directory: renameat2() can't replace a link by a directory. */
	cleanup_dir DIR *dir = S_ISDIR(st.st_mode) ? opendir(place) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return false;
	return dir;
}

enum occupant { ABSENT_OR_EMPTY, OTHER_MIRROR, SAME_MIRROR };

/* Reads the RECORD at `path`. NULL if it is no regular file with a record's members: other programs have such names, too. */
static json_t *read_record(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	json_t *record = json_loadfd(fd, 0, NULL);
	if (json_is_string(json_object_get(record, "driver")) &&
	    json_is_string(json_object_get(record, "allot")) &&
	    json_is_object(json_object_get(record, "files")))
		return record;
	json_decref(record);
	return NULL;
}

/* -EEXIST if anything but a mirror or an empty directory is at `place`. */
static int find_occupant(const char *place, const char *record, enum occupant *ret,
			 struct error *err)
{
	char path[PATHS_MAX];
	int r = paths_join(place, RECORD, path, sizeof(path), err);

	if (r < 0)
		return r;
	if (is_absent_or_empty(place)) {
		*ret = ABSENT_OR_EMPTY;
		return 0;
	}
	cleanup_json json_t *old = read_record(path), *new = json_loads(record, 0, NULL);
	if (!old)
		return error_set(
			err, EEXIST,
			"%s: exists already, and is not a mirror that allot made: name another "
			"directory",
			place);
	*ret = json_equal(old, new) ? SAME_MIRROR : OTHER_MIRROR;
	return 0;
}

static int fail_mount_point(const char *place, struct error *err)
{
	return error_set(
		err, EBUSY,
		"%s: is a mount point, which a finished mirror can't replace: name a directory in it, "
		"such as %s/mirror",
		place, place);
}

/* Refuses a place that replace_directory() could not replace. statx() of kernels before 5.8 does not report mount points. */
static int check_replaceable(const char *place, struct error *err)
{
	const char *slash = strrchr(place, '/'), *name = slash ? slash + 1 : place;
	struct statx st;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return error_set(err, EINVAL,
				 "%s: must end with the directory's own name, not with '%s'", place,
				 name);
	if (statx(AT_FDCWD, place, AT_SYMLINK_NOFOLLOW, 0, &st) == 0 &&
	    (st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return fail_mount_point(place, err);
	return 0;
}

/*
 * If an old mirror is at `place`, the two are exchanged atomically, so the old mirror is then at `made`. An empty directory at
 * `place` is replaced; the kernel refuses if it was filled meanwhile.
 */
static int replace_directory(const char *made, const char *place, enum occupant occupant,
			     struct error *err)
{
	unsigned int flags = occupant == ABSENT_OR_EMPTY ? 0 : RENAME_EXCHANGE;

	if (renameat2(AT_FDCWD, made, AT_FDCWD, place, flags) == 0)
		return 0;
	return errno == EBUSY
		       ? fail_mount_point(place, err)
		       : error_set_errno(err, errno, "can't move the finished mirror from %s to %s",
					 made, place);
}

int mirror_execute(const struct mirror_plan *plan, const char *place, bool *ret_is_new,
		   struct error *err)
{
	cleanup_free char *record = make_record(plan);
	char made[PATHS_MAX];
	enum occupant occupant = ABSENT_OR_EMPTY;

	if (!record)
		return error_set(err, ENOMEM, "out of memory");
	int r = find_occupant(place, record, &occupant, err);
	if (r < 0)
		return r;
	if (occupant == SAME_MIRROR) {
		*ret_is_new = false;
		return 0;
	}
	r = check_replaceable(place, err);
	if (r < 0)
		return r;
	if ((size_t)snprintf(made, sizeof(made), "%s.new-%d", place, (int)getpid()) >= sizeof(made))
		return error_set(err, ENAMETOOLONG,
				 "%.60s...: this path is too long: use a shorter one", place);
	if (mkdir(made, 0755) < 0)
		return error_set_errno(err, errno, "%s", made);
	r = write_mirror(plan, made, record, err);
	if (r == 0)
		r = replace_directory(made, place, occupant, err);
	if (r < 0 || occupant != ABSENT_OR_EMPTY)
		remove_tree(made);
	if (r == 0)
		*ret_is_new = true;
	return r;
}
