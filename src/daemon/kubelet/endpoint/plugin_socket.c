#include "daemon/kubelet/endpoint/plugin_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd/unix_connect.h"
#include "net/listen.h"

#define BACKLOG 64

bool plugin_socket_exists(const struct plugin_socket *s)
{
	struct stat st;
	return s->server && lstat(s->path, &st) == 0 && st.st_dev == s->device &&
	       st.st_ino == s->inode;
}

void plugin_socket_close(struct plugin_socket *s)
{
	if (plugin_socket_exists(s))
		unlink(s->path);
	s->server = grpc_server_free(s->server);
}

/* A socket's file alone proves nothing: a killed program leaves it behind. */
static bool is_served(const char *path)
{
	cleanup_fd int fd = unix_connect(path, SOCK_STREAM | SOCK_NONBLOCK);
	/* EAGAIN means that a server's backlog is full, so there is a server. */
	return fd >= 0 || fd == -EAGAIN;
}

int plugin_socket_open(struct plugin_socket *s, struct loop *loop,
		       const struct grpc_service *service, struct error *err)
{
	struct stat st;
	if (is_served(s->path))
		return error_set(
			err, EADDRINUSE,
			"%s: another program listens on this socket, and the kubelet accepts only "
			"one plugin with this name: stop allotd or that program",
			s->path);
	cleanup_fd int fd = listen_bind(s->path, SOCK_STREAM, err);
	if (fd < 0)
		return fd;
	if (chmod(s->path, 0600) < 0 || lstat(s->path, &st) < 0 || listen(fd, BACKLOG) < 0)
		return error_set_errno(err, errno, "%s", s->path);
	int r = grpc_server_new(loop, fd, service, &s->server, err);
	if (r < 0)
		return r;
	steal_fd(&fd);
	s->device = st.st_dev;
	s->inode = st.st_ino;
	return 0;
}
