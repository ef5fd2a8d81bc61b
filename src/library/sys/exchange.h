/*
 * One request and its answer on the tenant's socket, with file descriptors. Nothing stays open. The callers block
 * signals meanwhile: a call on a socket with a timeout is never restarted, so a profiler's timer would interrupt
 * every exchange. Thread safe; changes errno.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EXCHANGE_FDS_MAX 3

/*
 * Sends `request`, with our credentials, to the process that listens at `path`. Sends the descriptor give_fd too
 * unless it is negative. Writes the answer, which must be exactly reply_size bytes long. The answer's descriptors
 * then belong to the caller; unused entries of ret_fds are -1, and descriptors that do not fit are closed. Returns
 * 0 or -errno; -EPROTO if the answer has another size.
 */
int exchange(const char *path, uint64_t patience_ns, const void *request, size_t request_size,
	     int give_fd, void *ret_reply, size_t reply_size, int ret_fds[EXCHANGE_FDS_MAX]);

/* Blocks all signals and returns the old mask, which exchange_signals_back() restores. */
uint64_t exchange_signals_hold(void);
void exchange_signals_back(uint64_t held);
