#include "node/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t n = write(fd, text, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

int state_file_write(const char *path, const json_t *json, size_t flags, size_t most_bytes,
		     bool sync, struct error *err)
{
	char fresh[PATH_MAX];
	cleanup_free char *text = json ? json_dumps(json, flags) : NULL;
	if (!text)
		return error_set_errno(err, ENOMEM, "write %s", path);
	size_t size = strlen(text);
	if (size > most_bytes)
		return error_set(err, EFBIG, "write %s: %zu bytes: must be at most %zu", path, size,
				 most_bytes);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	cleanup_fd int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_set_errno(err, errno, "write %s", fresh);
	int r = write_all(fd, text, size);
	if (r >= 0 && sync && fsync(fd) < 0)
		r = -errno;
	if (r >= 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0) {
		unlink(fresh);
		return error_set_errno(err, -r, "write %s", path);
	}
	return 0;
}

/* At once: jansson reads a descriptor byte by byte. -EFBIG: there is more than `size`. */
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
	*ret_size = at;
	return 0;
}

int state_file_read(const char *path, size_t most_bytes, json_t **ret, struct error *err)
{
	json_error_t where;
	struct stat st;
	/* Not a symlink or a fifo that someone put there: those would be followed or wait for ever. */
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set_errno(err, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, EINVAL, "%s: not a plain file", path);
	if (st.st_size < 0 || (size_t)st.st_size > most_bytes)
		return error_set(err, EFBIG, "%s: has more than %zu bytes", path, most_bytes);
	/* What is open does not grow: a new one is renamed over it. */
	size_t size = (size_t)st.st_size;
	cleanup_free char *text = malloc(size + 1);
	int r = text ? read_all(fd, text, size, &size) : -ENOMEM;
	if (r < 0)
		return error_set_errno(err, -r, "%s", path);
	json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
	if (!json)
		return error_set(err, EINVAL, "%s:%d: %s", path, where.line, where.text);
	*ret = json;
	return 0;
}

int state_file_set_aside(const char *path)
{
	char bad[PATH_MAX];
	snprintf(bad, sizeof(bad), "%s.bad", path);
	return rename(path, bad) < 0 ? -errno : 0;
}
