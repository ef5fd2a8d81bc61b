/*
 * Client of the daemon's descriptor exchange (src/abi/shm/fd_exchange.h). The daemon keeps descriptors of GPU memory under
 * keys, so that processes of one tenant can share the memory. Thread safe; not for the hot path.
 */
#pragma once

#include <stdint.h>

/* The caller keeps `fd`. Returns 0, or -errno, for example if no daemon answers. */
int fd_exchange_put(uint64_t key, uint64_t bytes, int fd);

/* *ret_fd then belongs to the caller. Returns -ENOENT if no process of the tenant has sent a descriptor with this key. */
int fd_exchange_get(uint64_t key, uint64_t *ret_bytes, int *ret_fd);

/*
 * Makes the daemon close its descriptor, which would keep freed memory allocated. Does nothing if the daemon has none with this
 * key. If the daemon does not answer, fd_exchange_retry() tries again.
 */
void fd_exchange_delete(uint64_t key);
/* For the helper thread: repeats failed deletions, at most once a second. */
void fd_exchange_retry(uint64_t now_ns);

/* Call in a forked child: forgets the parent's failed requests. */
void fd_exchange_reset(void);
