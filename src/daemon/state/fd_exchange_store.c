#include "daemon/state/fd_exchange_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/util/nvidia_device.h"

struct stored_fd {
	uint64_t key, bytes;
	int pid, fd;
};

struct fd_store {
	struct stored_fd stored[FD_STORE_MOST];
	unsigned count;
};

struct fd_store *fd_store_new(void)
{
	return calloc(1, sizeof(struct fd_store));
}

struct fd_store *fd_store_free(struct fd_store *s)
{
	for (unsigned i = 0; s && i < s->count; i++)
		close(s->stored[i].fd);
	free(s);
	return NULL;
}

static struct stored_fd *find(struct fd_store *s, uint64_t key)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->stored[i].key == key)
			return &s->stored[i];
	return NULL;
}

/* A tenant's own file system (FUSE) can block close() and stat(). With AT_STATX_DONT_SYNC, statx() does not ask it. */
static bool has_nonblocking_close(int fd)
{
	struct statx is;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &is) < 0)
		return false;
	return (S_ISCHR(is.stx_mode) && is.stx_rdev_major == NVIDIA_MAJOR) ||
	       S_ISFIFO(is.stx_mode) || (S_ISREG(is.stx_mode) && fcntl(fd, F_GET_SEALS) >= 0);
}

int fd_store_put(struct fd_store *s, int pid, uint64_t key, uint64_t bytes, int *fd,
		 struct error *err)
{
	struct stored_fd *g = find(s, key);
	if (!key || !bytes)
		return error_set(
			err, EINVAL,
			"a process asked to share GPU memory with others under key 0 or with size 0: "
			"liballot.so and allotd must be of the same version");
	if (*fd < 0 || !has_nonblocking_close(*fd))
		return error_set(
			err, EBADF,
			"sharing: the request came without a file descriptor of GPU memory: liballot.so and allotd must be of the same version");
	if (g && g->pid != pid)
		return error_set(err, EEXIST,
				 "sharing: another process already shares memory under this key");
	if (!g && s->count == FD_STORE_MOST)
		return error_set(
			err, ENOSPC,
			"sharing: the tenant shares %d allocations already, the most allowed",
			FD_STORE_MOST);
	if (g)
		close(g->fd);
	else
		g = &s->stored[s->count++];
	*g = (struct stored_fd){ .key = key, .bytes = bytes, .pid = pid, .fd = steal_fd(fd) };
	return 0;
}

int fd_store_get(const struct fd_store *s, uint64_t key, uint64_t *ret_bytes)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->stored[i].key == key) {
			*ret_bytes = s->stored[i].bytes;
			return s->stored[i].fd;
		}
	return -ENOENT;
}

void fd_store_delete(struct fd_store *s, int pid, uint64_t key)
{
	for (unsigned i = s->count; i-- > 0;)
		if (s->stored[i].pid == pid && (!key || s->stored[i].key == key)) {
			close(s->stored[i].fd);
			s->stored[i] = s->stored[--s->count];
		}
}
