#include "daemon/memory/checkpoint/helper_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define POLL_NS 20000000

/* The pid of the helper that holds the lock; 0 if it is not written yet. */
static pid_t read_holder(int fd)
{
	char text[64];
	int pid = 0;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "keeper %d", &pid) == 1 && pid > 1 ? pid : 0;
}

/* The open file must still be at `path`: a helper removes its file at its end, and a lock on a removed file is useless. */
static bool is_at(int fd, const char *path)
{
	struct stat own, there;
	return fstat(fd, &own) == 0 && stat(path, &there) == 0 && own.st_ino == there.st_ino;
}

static int lock_helper_file(const char *path, int *ret_fd, struct error *err)
{
	cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	pid_t signalled = 0, holder;
	if (fd < 0)
		return error_set_errno(err, errno, "%s", path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_set_errno(err, errno, "lock %s", path);
		/* The lock's holder is alive, so its pid is valid. Ask that helper to end, once. */
		holder = read_holder(fd);
		if (holder && holder != signalled)
			kill(holder, SIGTERM);
		signalled = holder;
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

int helper_file_lock(const char *path, int *ret_fd, struct error *err)
{
	for (;;) {
		cleanup_fd int fd = -1;
		int r = lock_helper_file(path, &fd, err);
		if (r < 0)
			return r;
		if (is_at(fd, path)) {
			*ret_fd = steal_fd(&fd);
			return 0;
		}
	}
}

int helper_file_write(int fd, const struct helper_order *order)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	cleanup_file FILE *f = copy < 0 ? NULL : fdopen(copy, "w");
	if (!f) {
		close_fd(&copy);
		return -errno;
	}
	if (lseek(fd, 0, SEEK_SET) < 0 || ftruncate(fd, 0) < 0)
		return -errno;
	fprintf(f, "keeper %d\n", (int)getpid());
	for (unsigned i = 0; i < HELPER_MAX_CARDS; i++)
		if (order->bytes[i])
			fprintf(f, "card %u %" PRIu64 "\n", i, order->bytes[i]);
	for (unsigned i = 0; i < order->process_count; i++)
		fprintf(f, "process %d %" PRIu64 "\n", order->process[i].pid,
			order->process[i].start_time);
	return fflush(f) < 0 || ferror(f) ? -EIO : 0;
}

int helper_file_read(int fd, struct helper_order *ret)
{
	struct helper_order order = { 0 };
	char line[96];
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	cleanup_file FILE *f = copy < 0 ? NULL : fdopen(copy, "r");
	if (!f) {
		close_fd(&copy);
		return -errno;
	}
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		struct helper_process p;
		unsigned card;
		uint64_t bytes;
		if (sscanf(line, "card %u %" SCNu64, &card, &bytes) == 2 && card < HELPER_MAX_CARDS)
			order.bytes[card] = bytes;
		else if (sscanf(line, "process %" SCNd32 " %" SCNu64, &p.pid, &p.start_time) == 2 &&
			 p.pid > 1 && order.process_count < HELPER_MAX_PROCESSES)
			order.process[order.process_count++] = p;
	}
	*ret = order;
	return 0;
}
