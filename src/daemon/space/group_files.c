#include "daemon/space/group_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/util/json.h"
#include "daemon/util/state_file.h"

#define FILE_VERSION 1
#define FILE_MAX_BYTES 4096
/* deepest directory that is emptied: the group's user can nest directories in the pipe directory */
#define DEPTH_MOST 8
#define LONGEST_SOCKET "control_privileged"

void mps_path(const struct node *node, const char *id, const char *leaf, char path[NODE_PATH_MAX])
{
	snprintf(path, NODE_PATH_MAX, "%s/mps%s%s%s", node->run_dir, *id ? "/" : "", id, leaf);
}

static int make_dir(const char *path, mode_t mode, uid_t uid, struct error *err)
{
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return error_set_errno(err, errno, "make %s", path);
	/* The parent directory is this daemon's, so no other user can have replaced the path with a link. */
	if (uid != geteuid() && lchown(path, uid, (gid_t)-1) < 0)
		return error_set_errno(err, errno, "give %s to uid %u", path, (unsigned)uid);
	return chmod(path, mode) < 0 ? error_set_errno(err, errno, "chmod %s", path) : 0;
}

int mps_make_root_dir(const struct node *node, struct error *err)
{
	char path[NODE_PATH_MAX];
	mps_path(node, "", "", path);
	return make_dir(path, node->is_private ? 0700 : 0711, geteuid(), err);
}

int mps_make_dirs(const struct node *node, const struct mps_record *record, bool is_open,
		  struct error *err)
{
	char path[NODE_PATH_MAX];
	mps_path(node, record->id, "/pipe/" LONGEST_SOCKET, path);
	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return error_set(err, ENAMETOOLONG,
				 "%s: too long for a socket: use a shorter run directory", path);
	mps_path(node, record->id, "", path);
	int r = make_dir(path, is_open ? 0700 : 0711, geteuid(), err);
	if (r >= 0) {
		mps_path(node, record->id, "/pipe", path);
		r = make_dir(path, is_open ? 0755 : 0700, record->uid, err);
	}
	if (r >= 0) {
		mps_path(node, record->id, "/log", path);
		r = make_dir(path, 0700, record->uid, err);
	}
	return r;
}

/* Takes ownership of dir_fd. */
static void empty(int dir_fd, unsigned depth)
{
	DIR *dir = fdopendir(dir_fd);
	if (!dir) {
		close(dir_fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		const char *name = entry->d_name;
		if (!strcmp(name, ".") || !strcmp(name, "..") || unlinkat(dir_fd, name, 0) == 0)
			continue;
		int fd = depth ? openat(dir_fd, name,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			       : -1;
		if (fd >= 0)
			empty(fd, depth - 1);
		unlinkat(dir_fd, name, AT_REMOVEDIR);
	}
	closedir(dir);
}

void mps_delete_files(const struct node *node, const char *id)
{
	char path[NODE_PATH_MAX];
	mps_path(node, id, ".json", path);
	unlink(path);
	mps_path(node, id, "", path);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		empty(fd, DEPTH_MOST);
	if (rmdir(path) < 0 && errno != ENOENT)
		log_warning("can't remove %s: %s", path, strerror(errno));
}

int mps_open_log(const struct node *node, const char *id, bool is_new, struct error *err)
{
	char path[NODE_PATH_MAX];
	mps_path(node, id, "/log", path);
	/* No other user can have replaced the directory. The file in it may be a link, hence O_NOFOLLOW. */
	cleanup_fd int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Delete the log instead of emptying it: the group's user may have made it a hard link to another user's file. */
	if (dir_fd >= 0 && is_new)
		unlinkat(dir_fd, "mps.log", 0);
	int fd = dir_fd < 0 ? -1
			    : openat(dir_fd, "mps.log",
				     O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
					     (is_new ? O_CREAT | O_EXCL : 0),
				     0600);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set_errno(err, errno, "%s/mps.log", path);
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return error_set(err, EINVAL, "%s/mps.log: must be a plain file", path);
	}
	return fd;
}

int mps_save(const struct node *node, const struct mps_record *record, struct error *err)
{
	char path[NODE_PATH_MAX];
	mps_path(node, record->id, ".json", path);
	cleanup_json json_t *json = json_pack("{s:i, s:s, s:I, s:s, s:i, s:i, s:I}", "version",
					      FILE_VERSION, "uuid", record->card->info.uuid_text,
					      "uid", (json_int_t)record->uid, "group", record->group,
					      "number", (int)record->number, "pid", record->pid,
					      "start_time", (json_int_t)record->start_time);
	return state_file_write(path, json, JSON_INDENT(1), FILE_MAX_BYTES, false, err);
}

static int load(struct node *node, const char *path, struct mps_record *ret, struct error *err)
{
	cleanup_json json_t *json = NULL;
	const char *uuid_text = NULL, *group = NULL;
	int64_t version = 0, uid = 0, number = 0, pid = 0, start_time = 0;
	int r = state_file_read(path, FILE_MAX_BYTES, &json, err);
	if (r < 0)
		return r;
	if (json_read_int(json, "version", FILE_VERSION, FILE_VERSION, &version, err) <= 0 ||
	    json_read_string(json, "uuid", &uuid_text, err) <= 0 ||
	    json_read_int(json, "uid", 0, UINT32_MAX - 1, &uid, err) <= 0 ||
	    json_read_string(json, "group", &group, err) <= 0 || !*group ||
	    strlen(group) >= SPACE_GROUP_MAX ||
	    json_read_int(json, "number", 1, INT32_MAX, &number, err) <= 0 ||
	    json_read_int(json, "pid", 0, INT32_MAX, &pid, err) <= 0 ||
	    json_read_int(json, "start_time", 0, INT64_MAX, &start_time, err) <= 0)
		return error_set(err, EINVAL,
				 "version, uuid, uid, group, number, pid or start_time is "
				 "missing or invalid");
	ret->card = node_find_card_text(node, uuid_text);
	if (!ret->card)
		return error_set(err, ENODEV, "the group's GPU %.80s is not on this node",
				 uuid_text);
	strcpy(ret->group, group);
	ret->uid = (uid_t)uid;
	ret->number = (unsigned)number;
	ret->pid = (int)pid;
	ret->start_time = (uint64_t)start_time;
	return 0;
}

void mps_load_all(struct node *node, void (*found)(void *data, const struct mps_record *record),
		  void *data)
{
	char top[NODE_PATH_MAX], path[NODE_PATH_MAX];
	mps_path(node, "", "", top);
	cleanup_dir DIR *dir = opendir(top);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		struct mps_record record = { 0 };
		struct error err = { 0 };
		const char *end = strstr(entry->d_name, ".json");
		size_t length = end ? (size_t)(end - entry->d_name) : 0;
		if (!end || strcmp(end, ".json") != 0 || !length || length >= MPS_ID_MAX)
			continue;
		memcpy(record.id, entry->d_name, length);
		mps_path(node, record.id, ".json", path);
		if (load(node, path, &record, &err) >= 0) {
			found(data, &record);
			continue;
		}
		log_warning(
			"%s: this record of an MPS group of the previous daemon can't be used, and is "
			"removed: %s; if the group's nvidia-cuda-mps-control still runs, end it",
			path, err.text);
		mps_delete_files(node, record.id);
	}
}
