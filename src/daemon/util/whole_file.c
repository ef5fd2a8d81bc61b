#include "daemon/util/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd/write_all.h"

static int open_dir_of(const char *path)
{
	char copy[PATH_MAX];
	snprintf(copy, sizeof(copy), "%s", path);
	return open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int whole_file_sync_dir(const char *path)
{
	cleanup_fd int fd = open_dir_of(path);
	if (fd >= 0 && fsync(fd) == 0)
		return 0;
	return errno == EINVAL ? 0 : -errno; /* EINVAL: the file system syncs no directories */
}

int whole_file_write(const char *path, const char *text, size_t size, bool sync)
{
	char fresh[PATH_MAX];
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	cleanup_fd int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	/* Opened before anything changes, so that an error leaves the old file. */
	cleanup_fd int dir = sync ? open_dir_of(path) : -1;
	int r = sync && dir < 0 ? -errno : write_all(fd, text, size);
	if (r >= 0 && sync && fsync(fd) < 0)
		r = -errno;
	if (r >= 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(fresh);
	else if (sync)
		(void)fsync(dir);
	return r;
}

int whole_file_write_lines(const char *path, const char *lines, bool sync)
{
	if (*lines)
		return whole_file_write(path, lines, strlen(lines), sync);
	if (unlink(path) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (sync)
		whole_file_sync_dir(path);
	return 0;
}

/* `text` has size + 1 bytes, for a NUL at its end. Returns -EFBIG if the file has more than `size` bytes. */
static int read_all(int fd, char *text, size_t size, size_t *ret_size)
{
	size_t at = 0;
	for (;;) {
		ssize_t n = read(fd, text + at, size + 1 - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += (size_t)n;
		if (at > size)
			return -EFBIG;
		if (n == 0)
			break;
	}
	text[at] = '\0';
	*ret_size = at;
	return 0;
}

static int read_plain(const char *path, int flags, size_t most_bytes, char **ret, size_t *ret_size,
		      struct stat *ret_stat)
{
	/* O_NONBLOCK, because opening a FIFO would otherwise block. */
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -EINVAL;
	if (ret_stat->st_size < 0 || (size_t)ret_stat->st_size > most_bytes)
		return -EFBIG;
	cleanup_free char *text = malloc((size_t)ret_stat->st_size + 1);
	int r = text ? read_all(fd, text, (size_t)ret_stat->st_size, ret_size) : -ENOMEM;
	if (r >= 0)
		*ret = steal_pointer(&text);
	return r;
}

int whole_file_read(const char *path, size_t most_bytes, char **ret, size_t *ret_size)
{
	struct stat st;
	return read_plain(path, O_NOFOLLOW, most_bytes, ret, ret_size, &st);
}

int whole_file_read_foreign(const char *path, size_t most_bytes, char **ret, size_t *ret_size,
			    struct stat *ret_stat, struct error *err)
{
	cleanup_free char *bytes = NULL;
	struct stat st;
	int r = read_plain(path, 0, most_bytes, &bytes, ret_size, &st);
	if (r == -EINVAL || r == -EFBIG || (r >= 0 && !*ret_size))
		return error_set(err, EINVAL, "%s: must be a file of 1 to %zu bytes", path,
				 most_bytes);
	if (r >= 0 && *ret_size != (size_t)st.st_size)
		r = -EIO; /* it was cut off meanwhile */
	if (r < 0)
		return error_set_errno(err, -r, "%s", path);
	*ret = steal_pointer(&bytes);
	if (ret_stat)
		*ret_stat = st;
	return 0;
}

int whole_file_read_lines(const char *path, size_t most_bytes, void (*take)(void *data, char *line),
			  void *data)
{
	cleanup_free char *text = NULL;
	size_t size;
	char *rest;
	int r = whole_file_read(path, most_bytes, &text, &size);
	if (r < 0)
		return r;
	rest = text;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (*line)
			take(data, line);
	return 0;
}
