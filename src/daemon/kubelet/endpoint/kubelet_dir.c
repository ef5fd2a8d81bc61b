#include "daemon/kubelet/endpoint/kubelet_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/paths.h"

#define CHECK_NS NSEC_PER_SEC
#define WATCHED \
	(IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | \
	 IN_ONLYDIR)

struct kubelet_dir {
	const char *dir, *own;
	kubelet_dir_handler handler;
	void *data;
	int fd, watch; /* watch is negative while there is no directory */
	bool is_missing_logged;
	struct loop_source *source, *check_timer;
};

static bool has_kubelet(const struct kubelet_dir *k)
{
	char path[PATH_MAX];
	struct stat st;
	return paths_join(k->dir, KUBELET_SOCKET, path, sizeof(path), NULL) >= 0 &&
	       lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* The directory was removed on the host. Our container's mount still leads to it, even if the host has a new one. */
static bool is_removed(const struct kubelet_dir *k)
{
	struct stat st;
	return stat(k->dir, &st) == 0 && st.st_nlink == 0;
}

static void directory_removed(struct kubelet_dir *k)
{
	if (k->watch < 0)
		return;
	/* Otherwise a directory that was renamed would still send events. */
	inotify_rm_watch(k->fd, k->watch);
	k->watch = -1;
	k->handler(k->data, KUBELET_DIR_KUBELET_STOPPED);
}

static void directory_appeared(struct kubelet_dir *k, int watch)
{
	k->watch = watch;
	k->is_missing_logged = false;
	/* From now on, inotify reports kubelets that start. Report one that already runs. */
	if (has_kubelet(k))
		k->handler(k->data, KUBELET_DIR_KUBELET_STARTED);
}

/*
 * Runs each second, because inotify does not report the directory's removal (IN_DELETE_SELF) while our socket there is open.
 * inotify gives the same directory the same watch number, so another number means another directory.
 */
static void check_directory(void *data, uint32_t events)
{
	struct kubelet_dir *k = data;
	int watch = inotify_add_watch(k->fd, k->dir, WATCHED);
	int why = errno;
	if (watch >= 0 && is_removed(k)) {
		if (!k->is_missing_logged)
			k->handler(k->data, KUBELET_DIR_REMOVED_OUTSIDE);
		k->is_missing_logged = true;
	}
	if (watch >= 0 && watch == k->watch)
		return;
	directory_removed(k);
	if (watch >= 0) {
		directory_appeared(k, watch);
		return;
	}
	if (!k->is_missing_logged)
		log_info("kube_plugin_dir: %s: can't be watched for the kubelet's socket: %s; "
			 "trying again each second",
			 k->dir, strerror(why));
	k->is_missing_logged = true;
}

static void handle_event(struct kubelet_dir *k, const struct inotify_event *e)
{
	bool comes = e->mask & (IN_CREATE | IN_MOVED_TO);
	if (e->mask & IN_Q_OVERFLOW) {
		/* Events were lost: report whether the kubelet's socket exists. */
		k->handler(k->data, has_kubelet(k) ? KUBELET_DIR_KUBELET_STARTED
						   : KUBELET_DIR_KUBELET_STOPPED);
	} else if (e->wd != k->watch) {
		return; /* an event of an earlier directory */
	} else if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) {
		directory_removed(k);
		loop_arm(k->check_timer, 0, CHECK_NS);
	} else if (e->len && !strcmp(e->name, KUBELET_SOCKET)) {
		k->handler(k->data,
			   comes ? KUBELET_DIR_KUBELET_STARTED : KUBELET_DIR_KUBELET_STOPPED);
	} else if (e->len && !strcmp(e->name, k->own) && !comes) {
		k->handler(k->data, KUBELET_DIR_OWN_REMOVED);
	}
}

static void read_events(void *data, uint32_t events)
{
	struct kubelet_dir *k = data;
	_Alignas(struct inotify_event) char buffer[8192];
	ssize_t n = read(k->fd, buffer, sizeof(buffer));
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(buffer + at);
		handle_event(k, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
}

int kubelet_dir_watch(struct loop *loop, const char *dir, const char *own,
		      kubelet_dir_handler handler, void *data, struct kubelet_dir **ret,
		      struct error *err)
{
	struct kubelet_dir *k = calloc(1, sizeof(*k));
	if (!k)
		return error_set_errno(err, ENOMEM, "%s", dir);
	*k = (struct kubelet_dir){
		.dir = dir, .own = own, .handler = handler, .data = data, .watch = -1
	};
	k->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	int r = k->fd < 0 ? -errno : loop_add(loop, k->fd, EPOLLIN, read_events, k, &k->source);
	if (r >= 0)
		r = loop_add_timer(loop, check_directory, k, &k->check_timer);
	if (r < 0) {
		kubelet_dir_free(k);
		return error_set_errno(err, -r, "watch %s", dir);
	}
	loop_arm(k->check_timer, 0, CHECK_NS);
	*ret = k;
	return 0;
}

struct kubelet_dir *kubelet_dir_free(struct kubelet_dir *k)
{
	if (!k)
		return NULL;
	loop_remove(k->source);
	loop_remove(k->check_timer);
	close_fd(&k->fd);
	free(k);
	return NULL;
}
