#include "daemon/util/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

static int read_small(const char *path, char *text, size_t size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size_t used = 0;
	/* One read() may return only part of a file of /proc. */
	for (ssize_t n = 1; n > 0 && used < size - 1; used += (size_t)n) {
		n = read(fd, text + used, size - 1 - used);
		if (n < 0)
			return -errno;
	}
	text[used] = '\0';
	return (int)used;
}

int procfs_read(int pid, const char *name, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return read_small(path, text, size);
}

char *procfs_read_all(const char *path)
{
	cleanup_file FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;
	if (f && getdelim(&text, &size, '\0', f) < 0 && text)
		*text = '\0';
	return text;
}

bool procfs_is_same_program(int pid)
{
	char path[64];
	struct stat own, other;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/* Reads fields 3 and 22 of /proc/PID/stat (proc(5)). comm may contain any character, so parsing begins after the last ')'. */
static int read_stat(int pid, char *ret_state, uint64_t *ret_start)
{
	char path[64], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int r = read_small(path, text, sizeof(text));
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	char *rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 1,
			    " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
			    " %*s %" SCNu64,
			    ret_state, ret_start) != 2)
		return -ESRCH;
	return 0;
}

int procfs_parent(int pid)
{
	char text[1024];
	int parent;
	if (procfs_read(pid, "stat", text, sizeof(text)) < 0)
		return 0;
	const char *rest = strrchr(text, ')');
	return rest && sscanf(rest + 1, " %*c %d", &parent) == 1 && parent > 0 ? parent : 0;
}

bool procfs_is_ending(int pid)
{
	const unsigned exiting = 0x4; /* PF_EXITING, from the kernel's sched.h; flags are field 9 */
	char text[1024];
	unsigned flags;
	if (procfs_read(pid, "stat", text, sizeof(text)) < 0)
		return true;
	const char *rest = strrchr(text, ')');
	return rest && sscanf(rest + 1, " %*c %*s %*s %*s %*s %*s %u", &flags) == 1 &&
	       (flags & exiting);
}

int procfs_start_time(int pid, uint64_t *ret_ticks)
{
	char state;
	uint64_t start;
	int r = read_stat(pid, &state, &start);
	if (r < 0)
		return r;
	if (state == 'Z' || state == 'X')
		return -ESRCH;
	*ret_ticks = start;
	return 0;
}

void procfs_unescape(char *text)
{
	char *to = text;
	for (char *from = text; *from; to++) {
		unsigned code;
		if (from[0] == '\\' && sscanf(from + 1, "%3o", &code) == 1) {
			*to = (char)code;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

int procfs_open_process(int pid, uint64_t start_time, int *ret_pidfd)
{
	struct pollfd ended = { .events = POLLIN };
	uint64_t start_now;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec */
	int open_error = pidfd < 0 ? errno : 0;
	/* Read the start time after opening the pidfd: if it matches, the pidfd is that of the wanted process. */
	int r = procfs_start_time(pid, &start_now);
	ended.fd = pidfd;
	if (r == -ESRCH || (r >= 0 && start_now != start_time) ||
	    (pidfd >= 0 && poll(&ended, 1, 0) > 0))
		return -ESRCH;
	if (pidfd < 0 || r < 0)
		return pidfd < 0 ? -open_error : r;
	*ret_pidfd = pidfd;
	pidfd = -1;
	return 0;
}

/* `line` is "id:controllers:path". Returns true if its cgroup is frozen, in version 2 or by the freezer of version 1. */
static bool cgroup_line_is_frozen(char *line)
{
	char file[PATH_MAX], text[512];
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return false;
	*path++ = '\0';
	controllers++;
	if (!*controllers) {
		snprintf(file, sizeof(file), CGROUP_ROOT "%s/cgroup.events", path);
		if (read_small(file, text, sizeof(text)) <= 0) {
			/* Where version 1 is mounted too, version 2 is at "unified". */
			snprintf(file, sizeof(file), CGROUP_ROOT "/unified%s/cgroup.events", path);
			if (read_small(file, text, sizeof(text)) <= 0)
				return false;
		}
		return strstr(text, "frozen 1") != NULL;
	}
	if (!strcmp(controllers, "freezer")) {
		snprintf(file, sizeof(file), CGROUP_ROOT "/freezer%s/freezer.state", path);
		return read_small(file, text, sizeof(text)) > 0 && !strncmp(text, "FROZEN", 6);
	}
	return false;
}

static bool is_frozen(int pid)
{
	char path[64], text[4096], *next = text;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (read_small(path, text, sizeof(text)) < 0)
		return false;
	for (char *line; (line = strsep(&next, "\n"));)
		if (*line && cgroup_line_is_frozen(line))
			return true;
	return false;
}

bool procfs_is_stopped(int pid)
{
	char state;
	uint64_t start;
	if (read_stat(pid, &state, &start) < 0)
		return false;
	return state == 'T' || state == 't' || is_frozen(pid);
}
