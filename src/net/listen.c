#include "net/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

int listen_bind(const char *path, int type, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(err, ENAMETOOLONG,
				 "%s: too long for a socket's path: must be at most %zu bytes",
				 path, sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	cleanup_fd int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set_errno(err, errno, "socket");
	if (unlink(path) < 0 && errno != ENOENT)
		return error_set_errno(err, errno, "remove old %s", path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return error_set_errno(err, errno, "can't make the socket %s", path);
	return steal_fd(&fd);
}
