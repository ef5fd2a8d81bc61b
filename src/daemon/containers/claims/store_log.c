/*
 * Preallocates the store's log. A commit that lengthens the log waits for the file system's journal, and so for other programs'
 * writes, which takes much longer than overwriting. After a checkpoint, SQLite overwrites the log from its beginning.
 *
 * Zeros are harmless: SQLite ignores the log from the first frame that lacks the header's salts or a valid checksum (SQLite's
 * Database File Format, section "The WAL File").
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/containers/claims/store.h"
#include "daemon/containers/claims/store_inside.h"

/* Not fallocate(): a commit that fills a hole or unwritten blocks also waits for the journal. */
static int write_zeros(int fd, off_t from, off_t to)
{
	static const char zeros[64 << 10];
	while (from < to) {
		size_t want = to - from < (off_t)sizeof(zeros) ? (size_t)(to - from) : sizeof(zeros);
		ssize_t n = pwrite(fd, zeros, want, from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		from += n;
	}
	return fdatasync(fd) < 0 ? -errno : 0;
}

void store_preallocate_log(struct store *store)
{
	char path[sizeof(store->path) + 4];
	struct stat st;
	snprintf(path, sizeof(path), "%s-wal", store->path);
	cleanup_fd int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size >= STORE_LOG_BYTES)
		return;
	int r = write_zeros(fd, st.st_size, STORE_LOG_BYTES);
	if (r >= 0)
		return;
	log_debug("%s: can't be filled with zeros: %s", path, strerror(-r));
	/* Writing failed, probably because the disk is full: give the space back. */
	if (ftruncate(fd, st.st_size) < 0)
		log_debug("%s: can't be truncated to its former size: %s", path, strerror(errno));
}
