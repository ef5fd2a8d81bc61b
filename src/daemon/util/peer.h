/*
 * Who is at the other end of a unix socket. The process is known for certain by a pidfd: the kernel's
 * own (SO_PEERPIDFD, Linux 6.5), else one opened for the pid of SO_PEERCRED and confirmed by the
 * credentials that come with the first message.
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
	bool confirmed; /* the pidfd is the kernel's own word */
};

/*
 * Asks the kernel about a connected socket, and turns credentials on for what will be received.
 * -ESRCH: the peer is gone; -EPERM: it is in a pid namespace that can't be seen from here.
 */
int peer_open(int fd, struct peer *ret, struct error *err);
void peer_close(struct peer *peer);

/* Checks the sender of the first message against the pidfd, where that needs it. */
int peer_confirm(struct peer *peer, const struct ucred *sender, struct error *err);
bool peer_is_alive(const struct peer *peer);

/* Pid, uid and gid alone, for connections that need no pidfd. */
int peer_credentials(int fd, struct ucred *ret);
/* True when a supplementary or the primary group of the peer is gid. */
bool peer_is_in_group(int fd, const struct ucred *peer, gid_t gid);

/* Tests: never use SO_PEERPIDFD, as on a kernel that lacks it. */
void peer_pretend_old_kernel(bool old);
