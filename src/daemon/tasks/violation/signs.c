#include "daemon/tasks/violation/signs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/commands/command_cgroups.h"
#include "daemon/util/container.h"
#include "daemon/util/procfs.h"

/* Most ancestors of a process that by_descent() looks at, because each costs a read of /proc. */
#define ANCESTORS_MOST 256
#define ENVIRON_MOST 65536
#define MOUNTINFO_MOST 262144
#define MOUNT_POINT_MAX 512
#define CGROUP_TEXT_MOST 8192

static const struct tenant *by_cgroup(struct node *node, int pid)
{
	char text[CGROUP_TEXT_MOST], path[CONTAINER_PATH_MAX];
	const struct tenant *t, *found = NULL;
	if (procfs_read(pid, "cgroup", text, sizeof(text)) < 0 ||
	    !container_read_path(text, "", path))
		return NULL;
	/* If allot run started another allot run, the inner one's cgroup is below the outer one's, and has the longer path. */
	TAILQ_FOREACH(t, &node->tenants, link)
		if (command_cgroups_has(t, path) &&
		    (!found || strlen(t->command_cgroup) > strlen(found->command_cgroup)))
			found = t;
	return found;
}

/* Returns the tenant with which process `pid` has registered, or whose command_pid is `pid`; NULL if there is none. */
static const struct tenant *tenant_of_ancestor(struct node *node, int pid)
{
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link) {
		uint64_t start_time;
		if (tenant_process_of(t, pid))
			return t;
		if (t->command_pid == pid && procfs_start_time(pid, &start_time) >= 0 &&
		    start_time == t->command_start)
			return t;
	}
	return NULL;
}

static const struct tenant *by_descent(struct node *node, int pid)
{
	for (unsigned i = 0; i < ANCESTORS_MOST; i++) {
		pid = procfs_parent(pid);
		/* Stop at this daemon: even if a tenant's process started it, the daemon's children are not the tenant's. */
		if (pid <= 1 || pid == getpid())
			return NULL;
		const struct tenant *t = tenant_of_ancestor(node, pid);
		if (t)
			return t;
	}
	return NULL;
}

bool signs_is_untouchable(int pid)
{
	if (pid <= 1)
		return true;
	for (int above = getpid(); above > 1; above = procfs_parent(above))
		if (above == pid)
			return true;
	return false;
}

/*
 * Returns true if a line of mountinfo (proc(5)) seems to be a mount of tenant `id`'s directory, and writes the mount point to
 * ret_point. Any directory of that name makes such a line, so the caller checks the mount point with is_mounted().
 */
static bool names_tenants_dir(const char *line, const char *id, char ret_point[MOUNT_POINT_MAX])
{
	char root[MOUNT_POINT_MAX];
	if (sscanf(line, "%*s %*s %*s %511s %511s", root, ret_point) != 2)
		return false;
	procfs_unescape(root);
	procfs_unescape(ret_point);
	char *last = strrchr(root, '/');
	return last && !strcmp(last + 1, id);
}

/* Opens a path below a process's root directory. Follows no links, which may lead anywhere on the host. */
static int open_below_root(int pid, char *path)
{
	char root[32];
	char *save = NULL;
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	cleanup_fd int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (char *part = strtok_r(path, "/", &save); part && fd >= 0;
	     part = strtok_r(NULL, "/", &save)) {
		int next = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close_fd(&fd);
		fd = next;
	}
	return steal_fd(&fd);
}

/* Returns true if the path `point`, below the process's root, is the tenant's directory itself. */
static bool is_mounted(const struct tenant *t, int pid, char *point)
{
	char path[NODE_PATH_MAX];
	struct stat own, its;
	tenant_path(t, NULL, path);
	cleanup_fd int fd = open_below_root(pid, point);
	return fd >= 0 && fstat(fd, &its) == 0 && stat(path, &own) == 0 &&
	       own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

/* Finds the user who may mount anything in the process's mount namespace: the creator of its user namespace (ioctl_ns(2)). */
static bool find_mounter(int pid, uid_t *ret)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	cleanup_fd int mounts = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_fd int users = mounts >= 0 ? ioctl(mounts, NS_GET_USERNS) : -1;
	return users >= 0 && ioctl(users, NS_GET_OWNER_UID, ret) == 0;
}

static bool is_in_own_namespace(int pid)
{
	char path[64];
	struct stat own, its;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	/* If stat() fails, assume that the process shares our mount namespace: a mount then proves nothing. */
	return stat("/proc/self/ns/mnt", &own) < 0 || stat(path, &its) < 0 ||
	       (own.st_ino == its.st_ino && own.st_dev == its.st_dev);
}

/* Finds the tenant whose directory is mounted in the process's mount namespace. Returns NULL if there is none, or several. */
static const struct tenant *by_mount(struct node *node, int pid)
{
	cleanup_free char *text = malloc(MOUNTINFO_MOST);
	const struct tenant *found = NULL;
	struct tenant *t;
	uid_t mounter;
	if (!text || is_in_own_namespace(pid) || !find_mounter(pid, &mounter) ||
	    procfs_read(pid, "mountinfo", text, MOUNTINFO_MOST) < 0)
		return NULL;
	char *save = NULL, point[MOUNT_POINT_MAX];
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strstr(line, "/tenants/") && !strstr(line, "/claims/"))
			continue;
		TAILQ_FOREACH(t, &node->tenants, link) {
			if (t == found || (mounter != 0 && mounter != t->terms.uid) ||
			    !names_tenants_dir(line, t->terms.id, point) ||
			    !is_mounted(t, pid, point))
				continue;
			if (found)
				return NULL;
			found = t;
		}
	}
	return found;
}

/* Sets p->cgroup, the cgroup path of the process's container ("" if it is in none), and p->is_cgroup_v2. */
static void note_container(struct process *p)
{
	char text[CGROUP_TEXT_MOST];
	struct container what;
	if (p->cgroup)
		return;
	bool is_known = procfs_read(p->pid, "cgroup", text, sizeof(text)) >= 0 &&
			container_from_cgroups(text, &what);
	p->is_cgroup_v2 = is_known && what.v2_path[0];
	p->cgroup = strdup(!is_known ? "" : what.v2_path[0] ? what.v2_path : what.v1_path);
}

static bool is_below(const char *path, const char *above)
{
	size_t n = strlen(above);
	return n > 1 && !strncmp(path, above, n) && (path[n] == '/' || path[n] == '\0');
}

/* Cgroup paths of a process in the hierarchies of version 2 and version 1; "": unknown. */
struct place {
	char v2[CONTAINER_PATH_MAX], v1[CONTAINER_PATH_MAX];
};

static bool find_place(int pid, struct place *ret)
{
	char text[CGROUP_TEXT_MOST];
	if (procfs_read(pid, "cgroup", text, sizeof(text)) < 0)
		return false;
	if (!container_read_path(text, "", ret->v2))
		ret->v2[0] = '\0';
	if (!container_read_path(text, "freezer", ret->v1))
		ret->v1[0] = '\0';
	return true;
}

static bool lives_at(struct process *p, const struct place *place)
{
	note_container(p);
	return p->cgroup && p->cgroup[0] &&
	       is_below(p->is_cgroup_v2 ? place->v2 : place->v1, p->cgroup);
}

/* NULL if no tenant has processes in the container at `place`, or several have (then *ret_several is true). */
static const struct tenant *tenant_at(struct node *node, const struct place *place,
				      bool *ret_several)
{
	const struct tenant *found = NULL;
	struct tenant *t;
	*ret_several = false;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->slot_limit; i++) {
			if (!t->process[i] || t == found || !lives_at(t->process[i], place))
				continue;
			*ret_several |= found != NULL;
			found = t;
		}
	return *ret_several ? NULL : found;
}

/* Returns true if this daemon may be in the container at `place`. Such a container belongs to no tenant. */
static bool is_where_we_are(const struct place *place)
{
	struct place own;
	unsigned length;
	const char *engine;
	char id[CONTAINER_ID_MAX];
	if (!find_place(getpid(), &own))
		return true;
	const char *paths[][2] = { { own.v2, place->v2 }, { own.v1, place->v1 } };
	for (unsigned i = 0; i < 2; i++)
		if (container_match(paths[i][0], &length, &engine, id) &&
		    !strncmp(paths[i][0], paths[i][1], length))
			return true;
	return false;
}

static const struct tenant *by_container(struct node *node, int pid)
{
	struct place place;
	bool several;
	if (!find_place(pid, &place) || is_where_we_are(&place))
		return NULL;
	return tenant_at(node, &place, &several);
}

bool signs_has_own_container(struct node *node, const struct tenant *tenant, int pid)
{
	struct place place;
	bool several;
	if (!find_place(pid, &place) || is_where_we_are(&place))
		return false;
	const struct tenant *found = tenant_at(node, &place, &several);
	return !several && (!found || found == tenant);
}

static bool is_of_user(int pid, uid_t uid)
{
	char path[32];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) == 0 && st.st_uid == uid;
}

static const struct tenant *by_environment(struct node *node, int pid)
{
	static const char name[] = "ALLOT_SOCKET=";
	cleanup_free char *text = malloc(ENVIRON_MOST);
	int length = text ? procfs_read(pid, "environ", text, ENVIRON_MOST) : -ENOMEM;
	struct tenant *t;
	for (int at = 0; at < length; at += (int)strlen(text + at) + 1) {
		if (strncmp(text + at, name, strlen(name)) != 0)
			continue;
		TAILQ_FOREACH(t, &node->tenants, link) {
			char path[NODE_PATH_MAX];
			tenant_path(t, "allot.sock", path);
			if (!strcmp(text + at + strlen(name), path) && is_of_user(pid, t->terms.uid))
				return t;
		}
	}
	return NULL;
}

struct violation_signs signs_of(struct node *node, int pid)
{
	struct violation_signs s = { .by_cgroup = by_cgroup(node, pid) };
	if (s.by_cgroup || (s.by_descent = by_descent(node, pid)) ||
	    (s.by_mount = by_mount(node, pid)) || (s.by_container = by_container(node, pid)))
		return s;
	s.by_environment = by_environment(node, pid);
	return s;
}
