#include "daemon/containers/trust/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"

int file_bytes_read(const char *path, size_t most, char **ret, size_t *ret_size,
		    struct stat *ret_stat, struct error *err)
{
	struct stat st;
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set_errno(err, errno, "%s", path);
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (size_t)st.st_size > most)
		return error_set(err, EINVAL, "%s: must be a file of 1 to %zu bytes", path, most);
	size_t size = (size_t)st.st_size, have = 0;
	cleanup_free char *bytes = malloc(size + 1);
	if (!bytes)
		return error_set_errno(err, ENOMEM, "%s", path);
	while (have < size) {
		ssize_t n = read(fd, bytes + have, size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_set_errno(err, n < 0 ? errno : EIO, "%s", path);
		have += (size_t)n;
	}
	bytes[size] = '\0';
	*ret = steal_pointer(&bytes);
	*ret_size = size;
	if (ret_stat)
		*ret_stat = st;
	return 0;
}
