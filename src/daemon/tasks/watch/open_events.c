#include "daemon/tasks/watch/open_events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <linux/openat2.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/tasks/watch/exec_events.h"

#ifndef FAN_REPORT_FID /* glibc before 2.31 lacks this */
#define FAN_REPORT_FID 0x00000200
#endif

/* Size of the hash table of mount namespaces that were looked at. */
#define SEEN_MAX 256
/* Look at a mount namespace again after this time: its number may be reused by then, or it may have new device nodes. */
#define SEEN_NS (1 * NSEC_PER_SEC)
#define SCAN_NS (1 * NSEC_PER_SEC)
#define READS_MOST 64 /* most reads in one call of a handler, so that the event loop goes on */

struct open_events {
	open_events_handler handler;
	void *data;
	char *paths; /* NUL-separated */
	unsigned path_count;
	const char *path[OPEN_EVENTS_MAX_NODES];
	int fan_fd, exec_fd;
	uint64_t own_marked_ns;
	struct loop_source *fan_source, *exec_source, *scan_timer;
	struct {
		uint64_t number, at_ns;
	} seen[SEEN_MAX];
};

/* Makes fanotify report opens of the nodes in our own mount namespace. Skips nodes that do not exist. */
static int mark_own(struct open_events *o)
{
	int r = 0;
	for (unsigned i = 0; i < o->path_count; i++)
		if (fanotify_mark(o->fan_fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, o->path[i]) < 0 &&
		    errno != ENOENT && errno != ENOTDIR && r == 0)
			r = -errno;
	return r;
}

static int open_beneath(int root_fd, const char *path)
{
#ifdef SYS_openat2
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
#else
	return -1;
#endif
}

/*
 * Marks the nodes in the process's mount namespace. Its files may be hostile, so links resolve below its root (Linux 5.6), and
 * only character devices are marked; otherwise the process could make us mark any file of the host.
 */
static void mark_of(struct open_events *o, int pid)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	cleanup_fd int root_fd = open(path, O_PATH | O_CLOEXEC);
	for (unsigned i = 0; root_fd >= 0 && i < o->path_count; i++) {
		cleanup_fd int fd = open_beneath(root_fd, o->path[i]);
		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode))
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (fanotify_mark(o->fan_fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, path) < 0)
			log_debug("can't watch a GPU device node in the mount namespace of process %d: %s",
				  pid, strerror(errno));
	}
}

/* Marks the nodes of the process's mount namespace, unless that was done in the last SEEN_NS. */
static void watch_namespace(struct open_events *o, int pid)
{
	char path[64], text[64];
	uint64_t now_ns = clock_now_ns();
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	ssize_t n = readlink(path, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	/* the text is like "mnt:[4026531841]" */
	uint64_t number = strtoull(text + strcspn(text, "0123456789"), NULL, 10);
	unsigned slot = (unsigned)(number % SEEN_MAX);
	if (o->seen[slot].number == number && now_ns - o->seen[slot].at_ns < SEEN_NS)
		return;
	o->seen[slot].number = number;
	o->seen[slot].at_ns = now_ns;
	mark_of(o, pid);
}

static void scan(struct open_events *o)
{
	cleanup_dir DIR *proc = opendir("/proc");
	struct dirent *entry;
	while (proc && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			watch_namespace(o, atoi(entry->d_name));
}

static void scan_due(void *data, uint32_t events)
{
	scan(data);
}

static void exec_ready(void *data, uint32_t events)
{
	struct open_events *o = data;
	uint64_t now_ns = clock_now_ns();
	/*
	 * Mark our own nodes again: the driver may make a node at its first use. watch_namespace() may miss the node,
	 * because the process that called exec may have ended.
	 */
	if (now_ns - o->own_marked_ns >= SEEN_NS) {
		o->own_marked_ns = now_ns;
		mark_own(o);
	}
	for (unsigned i = 0; i < READS_MOST; i++) {
		int pid = exec_events_read(o->exec_fd);
		if (pid == -ENOBUFS) {
			scan(o);
			continue;
		}
		if (pid <= 0)
			return;
		watch_namespace(o, pid);
	}
}

static void handle_events(struct open_events *o, const char *buffer, size_t length)
{
	struct fanotify_event_metadata m;
	int last = 0;
	for (; length >= sizeof(m); buffer += m.event_len, length -= m.event_len) {
		memcpy(&m, buffer, sizeof(m));
		if (m.event_len < sizeof(m) || m.event_len > length ||
		    m.vers != FANOTIFY_METADATA_VERSION)
			return;
		/* Lost events need no action: the next census finds the processes. Skip repetitions, which are common. */
		if (m.mask & FAN_Q_OVERFLOW || m.pid <= 0 || m.pid == last || m.pid == getpid())
			continue;
		last = m.pid;
		o->handler(o->data, m.pid);
	}
}

static void opening_ready(void *data, uint32_t events)
{
	struct open_events *o = data;
	char buffer[4096];
	for (unsigned i = 0; i < READS_MOST; i++) {
		ssize_t n = read(o->fan_fd, buffer, sizeof(buffer));
		if (n <= 0)
			return;
		handle_events(o, buffer, (size_t)n);
	}
}

static int read_paths(struct open_events *o, const char *paths, struct error *err)
{
	char *save = NULL;
	o->paths = strdup(paths);
	if (!o->paths)
		return error_set_errno(err, ENOMEM, "device nodes");
	for (char *p = strtok_r(o->paths, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (o->path_count == OPEN_EVENTS_MAX_NODES)
			return error_set(err, E2BIG, "task_nodes: must list at most %d device nodes",
					 OPEN_EVENTS_MAX_NODES);
		if (*p != '/')
			return error_set(err, EINVAL, "task_nodes: '%s': must be an absolute path",
					 p);
		o->path[o->path_count++] = p;
	}
	return 0;
}

static int start_marks(struct open_events *o, struct error *err)
{
	o->fan_fd = fanotify_init(FAN_CLOEXEC | FAN_NONBLOCK | FAN_CLASS_NOTIF | FAN_REPORT_FID,
				  O_RDONLY | O_CLOEXEC);
	if (o->fan_fd < 0)
		return error_set_errno(err, errno, "fanotify");
	int r = mark_own(o);
	return r < 0 ? error_set_errno(err, -r, "fanotify on %s", o->path[0]) : 0;
}

static int watch(struct open_events *o, struct loop *loop, struct error *err)
{
	int r = loop_add(loop, o->fan_fd, EPOLLIN, opening_ready, o, &o->fan_source);
	o->exec_fd = exec_events_open();
	if (r >= 0 && o->exec_fd >= 0)
		r = loop_add(loop, o->exec_fd, EPOLLIN, exec_ready, o, &o->exec_source);
	if (r >= 0)
		r = loop_add_timer(loop, scan_due, o, &o->scan_timer);
	if (r < 0)
		return error_set_errno(err, -r, "can't watch for processes that open a GPU");
	if (o->exec_fd < 0)
		loop_arm(o->scan_timer, SCAN_NS, SCAN_NS);
	return 0;
}

int open_events_start(struct loop *loop, const char *paths, open_events_handler handler, void *data,
		      struct open_events **ret, struct error *err)
{
	struct open_events *o = calloc(1, sizeof(*o));
	if (!o)
		return error_set_errno(err, ENOMEM, "can't watch for processes that open a GPU");
	o->handler = handler;
	o->data = data;
	o->fan_fd = o->exec_fd = -1;
	int r = read_paths(o, paths, err);
	if (r >= 0)
		r = start_marks(o, err);
	if (r >= 0)
		r = watch(o, loop, err);
	if (r < 0) {
		open_events_stop(o);
		return r;
	}
	/* Mark the nodes of mount namespaces that already exist. */
	scan(o);
	*ret = o;
	return 0;
}

struct open_events *open_events_stop(struct open_events *o)
{
	if (!o)
		return NULL;
	loop_remove(o->fan_source);
	loop_remove(o->exec_source);
	loop_remove(o->scan_timer);
	close_fd(&o->fan_fd);
	close_fd(&o->exec_fd);
	free(o->paths);
	free(o);
	return NULL;
}

bool open_events_has_connector(const struct open_events *o)
{
	return o->exec_fd >= 0;
}
