#include "daemon/util/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/fd/unix_connect.h"
#include "daemon/util/peer.h"
#include "daemon/util/procfs.h"

#define WAIT_NS (2 * NSEC_PER_SEC)
/* Longer than the 0.5 s for which an ending daemon may wait for a fault report (gpu/health) before it releases its locks. */
#define CARD_WAIT_NS (1 * NSEC_PER_SEC)
/* Any user can hold a lock in a shared directory. Root's daemon can start without these locks, so it waits less for them. */
#define CONTESTED_WAIT_NS (100 * NSEC_PER_MSEC)
#define RETRY_NS (20 * NSEC_PER_MSEC)
#define HOLDER_MAX 160

static const char *const *lock_dirs = (const char *const[LOCK_DIRS]){
	[LOCK_DIR_OF_ROOT] = PATHS_SYSTEM_BASE "/cards", "/run/lock/allot", "/tmp/allot-cards"
};

void lock_set_dirs(const char *const dirs[LOCK_DIRS])
{
	lock_dirs = dirs;
}

static void read_holder(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (!*text)
		snprintf(text, size, "unknown");
}

static void write_holder(int fd, const char *run_dir)
{
	char text[HOLDER_MAX];
	int n = run_dir ? snprintf(text, sizeof(text), "%d (%.100s)\n", (int)getpid(), run_dir)
			: snprintf(text, sizeof(text), "%d\n", (int)getpid());
	/* Ignore a failed write: the text is only for error messages. */
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) < 0)
		return;
}

/* Returns false if the listener is dying: until its descriptor is closed, the kernel accepts connections. */
static bool is_answered(int fd)
{
	struct ucred peer;
	return peer_credentials(fd, &peer) < 0 || peer.pid <= 0 || !procfs_is_ending(peer.pid);
}

static bool socket_answers(const char *run_dir)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/allotd.sock", run_dir);
	cleanup_fd int fd = unix_connect(path, SOCK_STREAM | SOCK_NONBLOCK);
	return fd >= 0 ? is_answered(fd) : fd == -EAGAIN;
}

static int try_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static void wait_a_little(void)
{
	struct timespec ts = clock_to_timespec(RETRY_NS);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

int lock_run_dir(const char *run_dir, struct error *err)
{
	char path[256], holder[HOLDER_MAX];
	snprintf(path, sizeof(path), "%s/allotd.lock", run_dir);
	cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_set_errno(err, errno, "%s", path);
	uint64_t end_ns = clock_now_ns() + WAIT_NS;
	int r;
	/* A holder that does not answer is starting or ending, so wait. */
	while ((r = try_lock(fd)) == -EWOULDBLOCK && !socket_answers(run_dir) &&
	       clock_now_ns() < end_ns)
		wait_a_little();
	if (r == -EWOULDBLOCK) {
		read_holder(fd, holder, sizeof(holder));
		return error_set(err, EBUSY,
				 "%s: another allotd is running here, pid %s: end it first, or name "
				 "another --run-dir",
				 run_dir, holder);
	}
	if (r < 0)
		return error_set_errno(err, -r, "lock %s", path);
	write_holder(fd, NULL);
	return steal_fd(&fd);
}

/* All users may create lock files in such a directory, but not delete those of others (mode 1777). Returns -1 on failure. */
static int open_shared_dir(const char *path)
{
	struct stat st;
	bool made = mkdir(path, 01777) == 0;
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (geteuid() == 0 && st.st_uid != 0 && fchown(fd, 0, 0) < 0)
		return -1;
	/* The umask has reduced the mode that mkdir() set. */
	if ((made || geteuid() == 0) && fchmod(fd, 01777) < 0)
		return -1;
	if (fstat(fd, &st) < 0 || (st.st_mode & 01777) != 01777)
		return -1;
	return steal_fd(&fd);
}

/* Read access is enough for flock, so a file that another user's daemon made is opened read-only. */
static int open_shared_file(int dir, const char *name)
{
	const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	struct stat st;
	/* Try without O_CREAT first: fs.protected_regular forbids O_CREAT for another user's file in a sticky directory. */
	cleanup_fd int fd = openat(dir, name, O_RDWR | flags);
	if (fd < 0 && errno == ENOENT) {
		fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | flags, 0644);
		if (fd >= 0 && fchmod(fd, 0644) < 0)
			return -errno;
	}
	if (fd < 0)
		fd = openat(dir, name, O_RDONLY | flags);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? steal_fd(&fd) : -EINVAL;
}

/* The kernel closes a killed daemon's descriptors one after the other, so its cards may be locked longer than its directory. */
static int try_lock_until(int fd, uint64_t end_ns)
{
	int r;
	while ((r = try_lock(fd)) == -EWOULDBLOCK && clock_now_ns() < end_ns)
		wait_a_little();
	return r;
}

/* Returns 0 with *ret_fd -1 if root's directory cannot be made, for example in a user namespace. */
static int lock_of_root(const char *name, const char *run_dir, int *ret_fd, struct error *err)
{
	char path[PATH_MAX], holder[HOLDER_MAX];
	const char *dir = lock_dirs[LOCK_DIR_OF_ROOT];
	int r = paths_make_system(dir, err);
	if (r == -EACCES || r == -EPERM || r == -EROFS)
		return 0;
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_set_errno(err, errno, "%s", path);
	r = try_lock_until(fd, clock_now_ns() + CARD_WAIT_NS);
	if (r == -EWOULDBLOCK) {
		read_holder(fd, holder, sizeof(holder));
		return error_set(
			err, EBUSY,
			"another allotd shares this GPU already, pid %s: end it first; a GPU can "
			"have only one daemon",
			holder);
	}
	if (r < 0)
		return error_set_errno(err, -r, "lock %s", path);
	write_holder(fd, run_dir);
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* Returns 0 with *ret_fd -1 if the directory cannot be used. */
static int lock_shared(const char *dir_path, const char *name, uint64_t wait_ns, int *ret_fd,
		       struct error *err)
{
	cleanup_fd int dir = open_shared_dir(dir_path);
	if (dir < 0)
		return 0;
	cleanup_fd int fd = open_shared_file(dir, name);
	if (fd < 0)
		return error_set_errno(err, -fd, "%s/%s", dir_path, name);
	int r = try_lock_until(fd, clock_now_ns() + wait_ns);
	if (r == -EWOULDBLOCK)
		return error_set(err, EBUSY,
				 "another process holds this GPU's lock %s/%s: end that process first "
				 "(lslocks shows its pid); a GPU can have only one daemon",
				 dir_path, name);
	if (r < 0)
		return error_set_errno(err, -r, "lock %s/%s", dir_path, name);
	*ret_fd = steal_fd(&fd);
	return 0;
}

void lock_release(int fds[LOCK_DIRS])
{
	for (unsigned i = 0; i < LOCK_DIRS; i++)
		close_fd(&fds[i]);
}

int lock_card(const char *key, const char *run_dir, int ret_fds[LOCK_DIRS], struct error *err)
{
	int fds[LOCK_DIRS] = { -1, -1, -1 };
	unsigned held = 0;
	char name[160];
	snprintf(name, sizeof(name), "%.120s.lock", key);
	int r = geteuid() == 0 ? lock_of_root(name, run_dir, &fds[LOCK_DIR_OF_ROOT], err) : 0;
	bool is_roots = fds[LOCK_DIR_OF_ROOT] >= 0, is_contested = false;
	for (unsigned i = LOCK_DIR_OF_ROOT + 1; i < LOCK_DIRS && r >= 0; i++) {
		r = lock_shared(lock_dirs[i], name, is_roots ? CONTESTED_WAIT_NS : CARD_WAIT_NS,
				&fds[i], err);
		held += fds[i] >= 0;
		if (r < 0 && is_roots) {
			is_contested = true;
			r = 0;
		}
	}
	if (r >= 0 && !held && !is_roots)
		r = error_set(err, EACCES,
			      "neither %s nor %s can be used for locks: allotd must be able to "
			      "write to one of these directories",
			      lock_dirs[1], lock_dirs[2]);
	if (r < 0) {
		lock_release(fds);
		return r;
	}
	memcpy(ret_fds, fds, sizeof(fds));
	return is_contested;
}
