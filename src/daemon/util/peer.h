/*
 * A peer is the process at the other end of a unix socket. A pidfd from SO_PEERPIDFD (Linux 6.5) identifies the peer. On older
 * kernels, a pidfd is opened for the pid of SO_PEERCRED; the pidfd is confirmed when the first message comes from the same
 * pid.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/error.h"

struct peer {
	int pid; /* in this process's pid namespace */
	uid_t uid;
	gid_t gid;
	int pidfd;
	bool confirmed; /* the pidfd is known to be the peer's, not a later process's */
};

/*
 * Identifies the peer of a connected socket; peer_close() closes the pidfd. Without SO_PEERPIDFD, also enables SO_PASSCRED, so
 * that the first message brings the credentials for peer_confirm(). Returns -ESRCH if the peer is gone, -EPERM if the peer has
 * no pid in this process's pid namespace.
 */
int peer_open(int fd, struct peer *ret, struct error *err);
void peer_close(struct peer *peer);

/* Returns -ESRCH if the sender of the first message is another process or has ended. Does nothing if already confirmed. */
int peer_confirm(struct peer *peer, const struct ucred *sender, struct error *err);
bool peer_is_alive(const struct peer *peer);

/* Reads the peer's pid, uid and gid without opening a pidfd. */
int peer_credentials(int fd, struct ucred *ret);
/* Returns true if `gid` is the peer's primary group or a supplementary one. */
bool peer_is_in_group(int fd, const struct ucred *peer, gid_t gid);

/* For tests: do not use SO_PEERPIDFD. */
void peer_pretend_old_kernel(bool old);
