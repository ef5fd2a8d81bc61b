#include "daemon/tasks/commands/command_cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "daemon/state/node/node.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/commands/device_filter.h"
#include "daemon/util/cgroups.h"
#include "daemon/util/container.h"
#include "daemon/util/nvidia_device.h"
#include "daemon/util/peer.h"
#include "daemon/util/procfs.h"

#define USER_SLICE "/user.slice"
#define CGROUP_TEXT_MOST 8192
#define RETRY_NS (20 * NSEC_PER_MSEC)
#define RETRIES_MOST 500
#define LATE_RETRY_NS \
	NSEC_PER_SEC /* after RETRIES_MOST tries: another tenant's cgroup may be below */
#define END_ROUNDS 8

/* The directory of an ended tenant's cgroup. It can be removed when the processes in it have been moved or have ended. */
struct leftover {
	SLIST_ENTRY(leftover) link;
	unsigned tries;
	char dir[CGROUP_DIR_MAX];
};

struct command_cgroups {
	struct cgroups cgroups; /* v2.mount is "" if commands get no cgroups */
	struct device_filter *filter;
	SLIST_HEAD(, leftover) leftovers;
	struct loop_source *timer; /* armed while there are leftovers */
};

/* `filter` NULL: only checks the list. */
static int allow_users(const char *value, struct device_filter *filter, struct error *err)
{
	char list[CONFIG_PATH_MAX], *save = NULL;
	snprintf(list, sizeof(list), "%s", value);
	for (char *name = strtok_r(list, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		const struct passwd *user = getpwnam(name);
		int64_t uid = user ? user->pw_uid : 0;
		if (!user && parse_int(name, 0, UINT32_MAX - 1, &uid, NULL) < 0)
			return error_set(
				err, EINVAL,
				"'%.40s': must be off, on, or users of this machine, by name or "
				"number and separated by commas",
				name);
		int r = filter ? device_filter_allow_user(filter, (uid_t)uid) : 0;
		if (r < 0)
			return error_set_errno(err, -r, "can't let user %s use GPUs", name);
	}
	return 0;
}

int command_cgroups_check_guard(const char *value, struct error *err)
{
	return !strcmp(value, "off") || !strcmp(value, "on") ? 0 : allow_users(value, NULL, err);
}

/* Makes the filter with the table of users. It is not attached yet. */
static int make_guard(struct node *node, struct command_cgroups *c, struct error *err)
{
	const char *value = node->config.guard_devices;
	char dir[CGROUP_DIR_MAX];
	int r = c->cgroups.v2.mount[0] ? cgroups_dir(&c->cgroups.v2, USER_SLICE, dir) : -EOPNOTSUPP;
	if (!strcmp(value, "off")) {
		/* A filter there may be the system daemon's, which a private daemon must not remove. */
		if (r >= 0 && !node->is_private)
			device_filter_remove_left(dir);
		return 0;
	}
	if (r < 0)
		return error_set(
			err, -r,
			"guard_devices = %s: it needs root, and systemd's user.slice in cgroup "
			"version 2 (%s)",
			value, strerror(-r));
	r = device_filter_open(dir, &c->filter, err);
	if (r >= 0 && strcmp(value, "on") != 0)
		r = allow_users(value, c->filter, err);
	return r < 0 ? error_add(err, r, "guard_devices") : 0;
}

static int find_dir(const struct tenant *tenant, char ret_dir[CGROUP_DIR_MAX])
{
	const struct command_cgroups *c = tenant->node->commands;
	if (!c || !tenant->command_cgroup)
		return -EOPNOTSUPP;
	return cgroups_dir(&c->cgroups.v2, tenant->command_cgroup, ret_dir);
}

/* Returns true if commands in this cgroup get a cgroup of their own below it. */
static bool is_of_session(const char *path)
{
	return !strcmp(path, "/") || !strncmp(path, USER_SLICE "/", sizeof(USER_SLICE));
}

/* Lets the processes in the tenant's cgroup open GPUs. A cgroup's id is the inode number of its directory. */
static int note_id(struct tenant *tenant)
{
	struct device_filter *filter = tenant->node->commands->filter;
	char dir[CGROUP_DIR_MAX];
	struct stat st;
	int r = find_dir(tenant, dir);
	if (r >= 0 && stat(dir, &st) < 0)
		r = -errno;
	if (r < 0)
		return r;
	/* Below user@.service, a user could have made the directory. */
	if (st.st_uid != 0)
		return -EPERM;
	tenant->command_cgroup_id = st.st_ino;
	return filter ? device_filter_allow_cgroup(filter, st.st_ino) : 0;
}

static int write_pid(const char *dir, int pid)
{
	char file[CGROUP_DIR_MAX + 16], text[16];
	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	cleanup_fd int fd = open(file, O_WRONLY | O_CLOEXEC);
	int length = snprintf(text, sizeof(text), "%d", pid);
	return fd < 0 || write(fd, text, (size_t)length) < 0 ? -errno : 0;
}

static int make(struct tenant *tenant, const char *parent)
{
	char dir[CGROUP_DIR_MAX], path[CONTAINER_PATH_MAX];
	const char *above = !strcmp(parent, "/") ? "" : parent;
	int length = snprintf(path, sizeof(path), "%s/allot-%s", above, tenant->terms.id);
	if (length >= (int)sizeof(path))
		return -ENAMETOOLONG;
	int r = cgroups_dir(&tenant->node->commands->cgroups.v2, path, dir);
	if (r == -ENOENT)
		/* The daemon's umask must not hide the directory from the user's service manager. */
		r = mkdir(dir, 0755) < 0 || chmod(dir, 0755) < 0 ? -errno : 0;
	if (r < 0)
		return r;
	tenant->command_cgroup = strdup(path);
	if (tenant->command_cgroup)
		return note_id(tenant);
	rmdir(dir);
	return -ENOMEM;
}

int command_cgroups_add(struct tenant *tenant, const struct peer *command, struct error *err)
{
	struct command_cgroups *c = tenant->node->commands;
	char text[CGROUP_TEXT_MOST], path[CONTAINER_PATH_MAX], dir[CGROUP_DIR_MAX];
	if (!c || !c->cgroups.v2.mount[0])
		return 0;
	int r = procfs_read(command->pid, "cgroup", text, sizeof(text));
	if (r < 0 || !container_read_path(text, "", path) || !is_of_session(path) ||
	    (tenant->command_cgroup && !strcmp(path, tenant->command_cgroup)))
		return 0;
	bool is_new = !tenant->command_cgroup;
	r = is_new ? make(tenant, path) : 0;
	if (r >= 0)
		r = find_dir(tenant, dir);
	if (r >= 0)
		r = write_pid(dir, command->pid);
	/* If the command ended meanwhile, its pid may have been another process's. */
	if (r >= 0 && !peer_is_alive(command))
		r = -ESRCH;
	if (r >= 0)
		return 0;
	if (is_new)
		command_cgroups_end(tenant, NULL);
	if (c->filter && strcmp(path, "/") != 0)
		return error_set(err, -r,
				 "guard_devices lets only tenants use GPUs, and allotd can't make a "
				 "cgroup for this command below %s: %s",
				 path, strerror(-r));
	log_debug("tenant '%s': no cgroup below %s: %s", tenant->terms.name, path, strerror(-r));
	return 0;
}

bool command_cgroups_has(const struct tenant *tenant, const char *path)
{
	size_t length = tenant->command_cgroup ? strlen(tenant->command_cgroup) : 0;
	return length && !strncmp(path, tenant->command_cgroup, length) &&
	       (path[length] == '/' || !path[length]);
}

/* Calls handle() for each process in the cgroup itself. Returns how many there were, or -errno. */
static int for_each(const char *dir, void (*handle)(int pid, void *data), void *data)
{
	char file[CGROUP_DIR_MAX + 16];
	int pid, count = 0;
	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	cleanup_file FILE *f = fopen(file, "re");
	if (!f)
		return -errno;
	for (; fscanf(f, "%d", &pid) == 1; count++)
		/* 0: a process of another pid namespace */
		if (pid > 0)
			handle(pid, data);
	return count;
}

static void send_signal(int pid, void *data)
{
	kill(pid, *(int *)data);
}

/* Kills all processes at once, even those that fork meanwhile (Linux 5.14). */
static bool kill_all(const char *dir)
{
	char file[CGROUP_DIR_MAX + 16];
	snprintf(file, sizeof(file), "%s/cgroup.kill", dir);
	cleanup_fd int fd = open(file, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, "1", 1) == 1;
}

int command_cgroups_signal(const struct tenant *tenant, int signal)
{
	char dir[CGROUP_DIR_MAX];
	int r = find_dir(tenant, dir);
	if (r < 0)
		return r;
	if (command_cgroups_has(tenant, tenant->node->commands->cgroups.v2.own))
		return -EPERM;
	if (signal == SIGKILL && kill_all(dir))
		return 0;
	return for_each(dir, send_signal, &signal);
}

static bool has_gpu_open(int pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	cleanup_dir DIR *dir = opendir(path);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		struct statx st;
		/* AT_STATX_DONT_SYNC asks no server: the file may be on a network file system that hangs. */
		if (statx(dirfd(dir), entry->d_name, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
		    S_ISCHR(st.stx_mode) && st.stx_rdev_major == NVIDIA_MAJOR)
			return true;
	}
	return false;
}

struct end {
	const struct tenant *tenant;
	bool has_killed;
};

static void end_user_of_gpu(int pid, void *data)
{
	struct end *end = data;
	const struct tenant *tenant = end->tenant;
	if (!has_gpu_open(pid) || kill(pid, SIGKILL) < 0)
		return;
	end->has_killed = true;
	log_warning_of(tenant_log_key(&tenant->terms),
		       "tenant '%s' has ended, and its process %d, which still had a GPU open, is "
		       "killed (guard_devices)",
		       tenant->terms.name, pid);
}

static void move(int pid, void *data)
{
	write_pid(data, pid);
}

/* Returns false if the directory could not be removed yet: a process in it is ending, or has just forked. */
static bool remove_dir(const char *dir)
{
	char parent[CGROUP_DIR_MAX];
	snprintf(parent, sizeof(parent), "%s", dir);
	*strrchr(parent, '/') = '\0';
	for_each(dir, move, parent);
	return rmdir(dir) == 0 || errno != EBUSY;
}

static void remove_leftovers(struct command_cgroups *c, bool is_last_try)
{
	struct leftover *l, *next;
	bool is_late = true;
	for (l = SLIST_FIRST(&c->leftovers); l; l = next) {
		next = SLIST_NEXT(l, link);
		bool is_done = remove_dir(l->dir);
		if (!is_done && !is_last_try) {
			is_late &= ++l->tries >= RETRIES_MOST;
			continue;
		}
		if (!is_done)
			log_debug("%s can't be removed: it has processes", l->dir);
		SLIST_REMOVE(&c->leftovers, l, leftover, link);
		free(l);
	}
	if (!c->timer)
		return;
	if (SLIST_EMPTY(&c->leftovers))
		loop_disarm(c->timer);
	else if (is_late)
		loop_arm(c->timer, LATE_RETRY_NS, LATE_RETRY_NS);
}

static void retry_due(void *data, uint32_t events)
{
	remove_leftovers(data, false);
}

void command_cgroups_end(struct tenant *tenant, const char *why)
{
	struct command_cgroups *c = tenant->node->commands;
	char dir[CGROUP_DIR_MAX];
	if (c && c->filter && tenant->command_cgroup_id)
		device_filter_forget_cgroup(c->filter, tenant->command_cgroup_id);
	tenant->command_cgroup_id = 0;
	if (find_dir(tenant, dir) >= 0) {
		struct end end = { tenant, c->filter };
		/* Repeat this, because processes may fork meanwhile. */
		for (unsigned i = 0; i < END_ROUNDS && end.has_killed; i++) {
			end.has_killed = false;
			for_each(dir, end_user_of_gpu, &end);
		}
		struct leftover *l = remove_dir(dir) ? NULL : calloc(1, sizeof(*l));
		if (l) {
			snprintf(l->dir, sizeof(l->dir), "%s", dir);
			SLIST_INSERT_HEAD(&c->leftovers, l, link);
			loop_arm(c->timer, RETRY_NS, RETRY_NS);
		}
	}
	free(tenant->command_cgroup);
	tenant->command_cgroup = NULL;
}

int command_cgroups_start(struct node *node, struct command_cgroups **ret, struct error *err)
{
	struct command_cgroups *c = calloc(1, sizeof(*c));
	struct tenant *t;
	if (!c)
		return error_set_errno(err, ENOMEM, "cgroups of commands");
	if (geteuid() != 0 || cgroups_find(&c->cgroups) < 0)
		c->cgroups = (struct cgroups){ 0 };
	SLIST_INIT(&c->leftovers);
	*ret = c;
	int r = loop_add_timer(node->loop, retry_due, c, &c->timer);
	if (r < 0)
		return error_set_errno(err, -r, "can't make a timer");
	r = make_guard(node, c, err);
	TAILQ_FOREACH(t, &node->tenants, link) {
		int noted = r >= 0 && t->command_cgroup ? note_id(t) : 0;
		if (noted >= 0)
			continue;
		log_warning("tenant '%s': its command's cgroup %s can't be used any more: %s. With "
			    "guard_devices the command can't open GPUs: end it and run it again",
			    t->terms.name, t->command_cgroup, strerror(-noted));
		free(t->command_cgroup);
		t->command_cgroup = NULL;
	}
	/* Attach the filter last: until it has all tenants and users, it would refuse some of them. */
	return r >= 0 && c->filter ? device_filter_attach(c->filter, err) : r;
}

struct command_cgroups *command_cgroups_stop(struct command_cgroups *c)
{
	if (!c)
		return NULL;
	remove_leftovers(c, true);
	device_filter_close(c->filter);
	loop_remove(c->timer);
	free(c);
	return NULL;
}
