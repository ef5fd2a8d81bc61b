/*
 * Sends one request on the tenant's socket and receives the reply, with file descriptors. Callers block signals meanwhile: a
 * call on a socket with a timeout is never restarted, so a profiler's timer would interrupt every exchange. Thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EXCHANGE_FDS_MAX 3 /* most descriptors in a reply */

/*
 * Sends `request`, the process's credentials and, unless negative, the descriptor give_fd to the daemon that listens at `path`.
 * Connecting, sending and receiving wait at most patience_ns each. The reply's descriptors belong to the caller; unused entries
 * of ret_fds are -1, and descriptors that do not fit are closed. Returns 0 or -errno; -EPROTO if the reply is shorter than
 * reply_size. A longer reply is cut. Changes errno: call between exchange_begin() and exchange_end().
 */
int exchange(const char *path, uint64_t patience_ns, const void *request, size_t request_size,
	     int give_fd, void *ret_reply, size_t reply_size, int ret_fds[EXCHANGE_FDS_MAX]);

/* The calling thread's signal mask and errno before an exchange. */
struct exchange_saved {
	uint64_t signals;
	int error;
};

/* Blocks all signals. exchange_end() restores the thread's signal mask and errno. */
struct exchange_saved exchange_begin(void);
void exchange_end(struct exchange_saved saved);
