/*
 * The length of the store's log. A commit that makes a file longer waits for the journal of the file system, and
 * with it for what other programs have written: 20 to 100 ms now and then, on a disk where overwriting what
 * is there takes 0.3. So the log is given its length at once, and is overwritten from its beginning after
 * each checkpoint.
 *
 * What stands behind the last frame means nothing to SQLite (its file format, "the WAL file": a frame counts if
 * its salts and its checksum are those that go on from the header), so zeros may; as may a log of zeros alone.
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

/* Zeros that are written, not a hole or blocks set aside: to fill these takes the journal too. */
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

void store_lengthen_log(struct store *store)
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
	log_debug("%s: keeps no length: %s", path, strerror(-r));
	/* The last bytes of a disk are not for this. */
	if (ftruncate(fd, st.st_size) < 0)
		log_debug("%s: stays longer: %s", path, strerror(errno));
}
