#include "daemon/util/peer.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#define GROUPS_MAX 1024

static bool old_kernel;

void peer_pretend_old_kernel(bool old)
{
	old_kernel = old;
}

int peer_credentials(int fd, struct ucred *ret)
{
	socklen_t size = sizeof(*ret);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) < 0 ? -errno : 0;
}

bool peer_is_in_group(int fd, const struct ucred *peer, gid_t gid)
{
	gid_t groups[GROUPS_MAX];
	socklen_t size = sizeof(groups);
	if (gid == (gid_t)-1)
		return false;
	if (peer->gid == gid)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return false;
	for (size_t i = 0; i < size / sizeof(gid_t); i++)
		if (groups[i] == gid)
			return true;
	return false;
}

static bool pidfd_is_alive(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	return poll(&p, 1, 0) == 0;
}

bool peer_is_alive(const struct peer *peer)
{
	return pidfd_is_alive(peer->pidfd);
}

int peer_open(int fd, struct peer *ret, struct error *err)
{
	struct ucred credentials;
	int on = 1;
	int r = peer_credentials(fd, &credentials);
	if (r < 0)
		return error_set_errno(err, -r,
				       "can't read the credentials of the process that connects");
	if (credentials.pid <= 0)
		return error_set(
			err, EPERM,
			"the process is in a pid namespace that is not below the daemon's: run "
			"the daemon in the host's pid namespace (hostPID)");

	struct peer peer = {
		.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid, .pidfd = -1
	};
	socklen_t size = sizeof(peer.pidfd);
	if (!old_kernel && getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &peer.pidfd, &size) == 0) {
		peer.confirmed = true;
	} else {
		peer.pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
		if (peer.pidfd < 0)
			return error_set_errno(err, errno, "can't watch process %d (pidfd_open)",
					       peer.pid);
		if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0) {
			error_set_errno(err, errno,
					"can't ask the kernel which process sends a request "
					"(SO_PASSCRED)");
			close_fd(&peer.pidfd);
			return -err->code;
		}
	}
	*ret = peer;
	return 0;
}

void peer_close(struct peer *peer)
{
	close_fd(&peer->pidfd);
}

int peer_confirm(struct peer *peer, const struct ucred *sender, struct error *err)
{
	if (peer->confirmed)
		return 0;
	/*
	 * If the process of the pidfd still lives, no other process got its pid since pidfd_open(). So a sender with that pid
	 * is the pidfd's process. A reuse of the pid between connect() and pidfd_open() goes unnoticed.
	 */
	if (sender->pid != peer->pid || !pidfd_is_alive(peer->pidfd))
		return error_set(
			err, ESRCH,
			"process %d opened this connection, but has ended or did not send this "
			"request: the sender must open its own connection",
			peer->pid);
	peer->confirmed = true;
	return 0;
}
