#include "daemon/state/fd_exchange_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NVIDIA_MAJOR 195 /* Linux, Documentation/admin-guide/devices.txt */

struct given {
	uint64_t key, bytes;
	int pid, fd;
};

struct sharing {
	struct given given[SHARING_MOST];
	unsigned count;
};

struct sharing *sharing_new(void)
{
	return calloc(1, sizeof(struct sharing));
}

struct sharing *sharing_free(struct sharing *s)
{
	for (unsigned i = 0; s && i < s->count; i++)
		close(s->given[i].fd);
	free(s);
	return NULL;
}

static struct given *find(struct sharing *s, uint64_t key)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->given[i].key == key)
			return &s->given[i];
	return NULL;
}

/*
 * Closing must not block. A tenant's own file system (FUSE) can block close() and stat(), so statx() does not ask the file
 * system.
 */
static bool is_harmless(int fd)
{
	struct statx is;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &is) < 0)
		return false;
	return (S_ISCHR(is.stx_mode) && is.stx_rdev_major == NVIDIA_MAJOR) ||
	       S_ISFIFO(is.stx_mode) || (S_ISREG(is.stx_mode) && fcntl(fd, F_GET_SEALS) >= 0);
}

int sharing_give(struct sharing *s, int pid, uint64_t key, uint64_t bytes, int *fd,
		 struct error *err)
{
	struct given *g = find(s, key);
	if (!key || !bytes)
		return error_set(err, EINVAL, "sharing: key and bytes must not be 0");
	if (*fd < 0 || !is_harmless(*fd))
		return error_set(err, EBADF,
				 "sharing: must come with a descriptor of device memory");
	if (g && g->pid != pid)
		return error_set(err, EEXIST,
				 "sharing: another process already shares memory under this key");
	if (!g && s->count == SHARING_MOST)
		return error_set(
			err, ENOSPC,
			"sharing: the tenant shares %d allocations already, the most allowed",
			SHARING_MOST);
	if (g)
		close(g->fd);
	else
		g = &s->given[s->count++];
	*g = (struct given){ .key = key, .bytes = bytes, .pid = pid, .fd = steal_fd(fd) };
	return 0;
}

int sharing_find(const struct sharing *s, uint64_t key, uint64_t *ret_bytes)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->given[i].key == key) {
			*ret_bytes = s->given[i].bytes;
			return s->given[i].fd;
		}
	return -ENOENT;
}

void sharing_drop(struct sharing *s, int pid, uint64_t key)
{
	for (unsigned i = s->count; i-- > 0;)
		if (s->given[i].pid == pid && (!key || s->given[i].key == key)) {
			close(s->given[i].fd);
			s->given[i] = s->given[--s->count];
		}
}
