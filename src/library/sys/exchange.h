/*
 * One request and its answer on the tenant's socket, with descriptors. Nothing is kept open. The callers hold signals
 * back: a socket with a time limit is never restarted, and a profiler's timer would end every exchange. Thread
 * safe; errno is changed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EXCHANGE_FDS_MAX 3

/*
 * Sends `request` to whoever listens at `path`, with our credentials and, unless it is negative, a descriptor;
 * writes the answer, of exactly that size, and its descriptors, which are then the caller's: -1 where there was
 * none, and none that does not fit is left. 0 or -errno: -EPROTO for an answer of another size.
 */
int exchange(const char *path, uint64_t patience_ns, const void *request, size_t request_size,
	     int give_fd, void *ret_reply, size_t reply_size, int ret_fds[EXCHANGE_FDS_MAX]);

/* All signals, until exchange_signals_back(). */
uint64_t exchange_signals_hold(void);
void exchange_signals_back(uint64_t held);
