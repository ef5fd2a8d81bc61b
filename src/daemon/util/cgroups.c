#include "daemon/util/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/util/procfs.h"

#define V1_TRIES 25 /* the most writes that one call of write_frozen() makes */

static void set_hierarchy(struct cgroups_hierarchy *h, const char *mount, const char *root)
{
	if (h->mount[0] || strlen(mount) >= sizeof(h->mount) || strlen(root) >= sizeof(h->root))
		return;
	strcpy(h->mount, mount);
	strcpy(h->root, strcmp(root, "/") != 0 ? root : "");
	procfs_unescape(h->mount);
	procfs_unescape(h->root);
}

/* Parses a line of mountinfo (proc(5)): "id parent major:minor root mount options [tags] - type source super-options". */
static void parse_mount(char *line, struct cgroups *c)
{
	char *type, *root, *mount, *super, *save = NULL;
	char *rest = strstr(line, " - ");
	if (!rest)
		return;
	*rest = '\0';
	type = strtok_r(rest + 3, " ", &save);
	strtok_r(NULL, " ", &save);
	super = strtok_r(NULL, " ", &save);
	save = NULL;
	strtok_r(line, " ", &save);
	strtok_r(NULL, " ", &save);
	strtok_r(NULL, " ", &save);
	root = strtok_r(NULL, " ", &save);
	mount = strtok_r(NULL, " ", &save);
	if (!type || !super || !root || !mount)
		return;
	if (!strcmp(type, "cgroup2"))
		set_hierarchy(&c->v2, mount, root);
	if (strcmp(type, "cgroup") != 0)
		return;
	save = NULL;
	for (char *word = strtok_r(super, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (!strcmp(word, "freezer"))
			set_hierarchy(&c->v1, mount, root);
		if (!strcmp(word, "memory"))
			set_hierarchy(&c->v1_memory, mount, root);
	}
}

void cgroups_parse(const char *mountinfo, const char *own, struct cgroups *ret)
{
	*ret = (struct cgroups){ 0 };
	while (*mountinfo) {
		size_t length = strcspn(mountinfo, "\n");
		char line[4096];
		if (length < sizeof(line)) {
			memcpy(line, mountinfo, length);
			line[length] = '\0';
			parse_mount(line, ret);
		}
		mountinfo += length + (mountinfo[length] == '\n');
	}
	if (!container_read_path(own, "", ret->v2.own))
		ret->v2.own[0] = '\0';
	if (!container_read_path(own, "freezer", ret->v1.own))
		ret->v1.own[0] = '\0';
	if (!container_read_path(own, "memory", ret->v1_memory.own))
		ret->v1_memory.own[0] = '\0';
}

int cgroups_find(struct cgroups *ret)
{
	cleanup_free char *mounts = procfs_read_all("/proc/self/mountinfo");
	cleanup_free char *own = mounts ? procfs_read_all("/proc/self/cgroup") : NULL;
	if (!own)
		return errno ? -errno : -ENOMEM;
	cgroups_parse(mounts, own, ret);
	return 0;
}

static const char *control_file(bool is_v2)
{
	return is_v2 ? "cgroup.freeze" : "freezer.state";
}

int cgroups_dir(const struct cgroups_hierarchy *h, const char *path, char ret_dir[CGROUP_DIR_MAX])
{
	size_t n = strlen(h->root);
	if (!h->mount[0] || !path[0])
		return -EOPNOTSUPP;
	/* If only a subtree of the hierarchy is mounted, the cgroup must be in that subtree. */
	if (strncmp(path, h->root, n) != 0 || (path[n] && path[n] != '/'))
		return -EOPNOTSUPP;
	snprintf(ret_dir, CGROUP_DIR_MAX, "%s%s", h->mount, path + n);
	return access(ret_dir, F_OK) < 0 ? -errno : 0;
}

static int locate(const struct cgroups_hierarchy *h, bool is_v2, const char *path,
		  struct cgroup *ret)
{
	char file[CGROUP_DIR_MAX + 16];
	if (!h->mount[0] || !path[0])
		return -EOPNOTSUPP;
	if (!container_may_freeze(path, h->own))
		return -EPERM;
	ret->is_v2 = is_v2;
	int r = cgroups_dir(h, path, ret->dir);
	if (r < 0)
		return r;
	snprintf(file, sizeof(file), "%s/%s", ret->dir, control_file(is_v2));
	/* ENOENT: kernels before 5.2 have cgroup version 2 without cgroup.freeze. */
	if (access(file, W_OK) < 0)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	return 0;
}

int cgroup_find_freezer(const struct cgroups *cgroups, const struct container *container,
			struct cgroup *ret, struct error *err)
{
	struct cgroup cgroup;
	int r = locate(&cgroups->v2, true, container->v2_path, &cgroup);
	if (r < 0) {
		int r1 = locate(&cgroups->v1, false, container->v1_path, &cgroup);
		/* If neither version can be used, report version 2's error, unless version 2 is merely missing. */
		r = r1 == 0 || r == -EOPNOTSUPP ? r1 : r;
	}
	if (r == -EPERM)
		return error_set(err, EPERM,
				 "container %.*s can't be frozen: this daemon runs in it",
				 CONTAINER_SHORT_ID, container->id);
	if (r == -EOPNOTSUPP)
		return error_set(
			err, EOPNOTSUPP,
			"container %.*s can't be frozen: there is no freezer for its cgroup: run "
			"allot doctor",
			CONTAINER_SHORT_ID, container->id);
	if (r < 0)
		return error_set_errno(err, -r, "can't use the freezer of container %.*s",
				       CONTAINER_SHORT_ID, container->id);
	*ret = cgroup;
	return 0;
}

static int write_text(const char *file, const char *text)
{
	cleanup_fd int fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/*
 * Writes FROZEN to a freezer of version 1. If processes fork meanwhile, the freezer may stay FREEZING for ever; each
 * further write makes the kernel check again (observed on Linux 6.18; also in runc's libcontainer, cgroups/fs/freezer.go).
 */
static int write_frozen(const char *file)
{
	int r = 0;
	for (unsigned i = 0; i < V1_TRIES && r >= 0; i++) {
		char text[16] = "";
		cleanup_fd int fd = open(file, O_RDWR | O_CLOEXEC);
		if (fd < 0 || write(fd, "FROZEN", 6) < 0)
			r = -errno;
		else if (pread(fd, text, sizeof(text) - 1, 0) < 0)
			r = -errno;
		else if (!strncmp(text, "FROZEN", 6))
			break;
	}
	return r;
}

int cgroup_freeze(const struct cgroup *cgroup)
{
	char file[CGROUP_DIR_MAX + 16];
	snprintf(file, sizeof(file), "%s/%s", cgroup->dir, control_file(cgroup->is_v2));
	return cgroup->is_v2 ? write_text(file, "1") : write_frozen(file);
}

int cgroup_retry_freeze(const struct cgroup *cgroup)
{
	int r = cgroup_is_frozen(cgroup);
	/* Version 2 freezes processes that fork meanwhile, so it needs no second request. */
	if (r != 0 || cgroup->is_v2)
		return r;
	r = cgroup_thaw(cgroup);
	if (r >= 0)
		r = cgroup_freeze(cgroup);
	return r < 0 ? r : cgroup_is_frozen(cgroup);
}

void cgroup_thaw_file(const struct cgroup *cgroup, char ret_file[CGROUP_DIR_MAX + 16],
		      const char **ret_text)
{
	snprintf(ret_file, CGROUP_DIR_MAX + 16, "%s/%s", cgroup->dir, control_file(cgroup->is_v2));
	*ret_text = cgroup->is_v2 ? "0" : "THAWED";
}

int cgroup_thaw(const struct cgroup *cgroup)
{
	char file[CGROUP_DIR_MAX + 16];
	const char *text;
	cgroup_thaw_file(cgroup, file, &text);
	return write_text(file, text);
}

int cgroup_is_frozen(const struct cgroup *cgroup)
{
	char file[CGROUP_DIR_MAX + 16], text[256];
	snprintf(file, sizeof(file), "%s/%s", cgroup->dir,
		 cgroup->is_v2 ? "cgroup.events" : "freezer.state");
	cleanup_fd int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return cgroup->is_v2 ? strstr(text, "frozen 1") != NULL : !strncmp(text, "FROZEN", 6);
}

static bool is_killed(int pid)
{
	char path[64], line[128];
	bool killed = false;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	cleanup_file FILE *f = fopen(path, "re");
	while (f && !killed && fgets(line, sizeof(line), f)) {
		uint64_t pending;
		if (sscanf(line, "SigPnd: %" SCNx64, &pending) == 1 ||
		    sscanf(line, "ShdPnd: %" SCNx64, &pending) == 1)
			killed = pending & UINT64_C(1) << (SIGKILL - 1);
	}
	return killed;
}

bool cgroup_has_killed(const struct cgroup *cgroup)
{
	char path[CGROUP_DIR_MAX + 16];
	int pid;
	bool killed = false;
	if (cgroup->is_v2)
		return false;
	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup->dir);
	cleanup_file FILE *f = fopen(path, "re");
	while (f && !killed && fscanf(f, "%d", &pid) == 1)
		killed = is_killed(pid);
	return killed;
}
