#include "library/swap/fd_exchange_client.h"

#include <stdatomic.h>

#include "abi/shm/fd_exchange.h"
#include "library/sys/config.h"
#include "library/sys/exchange.h"
#include "library/sys/log.h"
#include "library/sys/sys.h"

#define TIMEOUT_NS (2 * NS_PER_S)
#define PENDING_DELETES_MAX 64
#define RETRY_EVERY_NS NS_PER_S

/* Keys of descriptors that the daemon must still close, because requests to delete them failed. 0 is a free entry. */
static _Atomic uint64_t pending_deletes[PENDING_DELETES_MAX];
static _Atomic uint32_t pending_count;
static uint64_t tried_ns; /* when failed requests were last repeated */

/* Returns 0 or -errno. If ret_fd is NULL, closes a descriptor that comes with the reply. */
static int call(enum fd_exchange_op op, uint64_t key, uint64_t bytes, int give_fd,
		struct fd_exchange_reply *ret, int *ret_fd)
{
	struct fd_exchange_request request = {
		.magic = FD_EXCHANGE_MAGIC,
		.version = FD_EXCHANGE_VERSION,
		.op = op,
		.key = key,
		.bytes = bytes,
	};
	int fds[EXCHANGE_FDS_MAX];
	struct exchange_saved saved = exchange_begin();
	int error = exchange(config_socket(), TIMEOUT_NS, &request, sizeof(request), give_fd, ret,
			     sizeof(*ret), fds);

	if (!error && (ret->magic != FD_EXCHANGE_MAGIC || ret->version != FD_EXCHANGE_VERSION))
		error = -EPROTO;
	if (!error)
		error = -ret->status;
	if (!error && ret_fd && fds[0] < 0)
		error = -EPROTO;
	for (int i = 0; i < EXCHANGE_FDS_MAX; i++) {
		if (i == 0 && !error && ret_fd)
			*ret_fd = fds[0];
		else if (fds[i] >= 0)
			close(fds[i]);
	}
	exchange_end(saved);
	return error;
}

int fd_exchange_put(uint64_t key, uint64_t bytes, int fd)
{
	struct fd_exchange_reply reply;

	return call(FD_EXCHANGE_PUT, key, bytes, fd, &reply, NULL);
}

int fd_exchange_get(uint64_t key, uint64_t *ret_bytes, int *ret_fd)
{
	struct fd_exchange_reply reply;
	int error = call(FD_EXCHANGE_GET, key, 0, -1, &reply, ret_fd);

	if (!error)
		*ret_bytes = reply.bytes;
	return error;
}

static int send_delete(uint64_t key)
{
	struct fd_exchange_reply reply;

	return call(FD_EXCHANGE_DELETE, key, 0, -1, &reply, NULL);
}

void fd_exchange_delete(uint64_t key)
{
	int error = send_delete(key);

	for (uint32_t i = 0; error && i < PENDING_DELETES_MAX; i++) {
		uint64_t unused = 0;
		if (!atomic_compare_exchange_strong(&pending_deletes[i], &unused, key))
			continue;
		atomic_fetch_add(&pending_count, 1);
		return;
	}
	if (error)
		log_write("the daemon could not be told (errno %d) that GPU memory shared by "
			  "cuIpcGetMemHandle was freed: the memory stays allocated until this "
			  "process ends",
			  -error);
}

void fd_exchange_retry(uint64_t now_ns)
{
	if (likely(!atomic_load(&pending_count)) || now_ns - tried_ns < RETRY_EVERY_NS)
		return;
	tried_ns = now_ns;
	for (uint32_t i = 0; i < PENDING_DELETES_MAX; i++) {
		uint64_t key = atomic_load(&pending_deletes[i]);
		if (!key)
			continue;
		if (send_delete(key))
			return;
		atomic_store(&pending_deletes[i], 0);
		atomic_fetch_sub(&pending_count, 1);
	}
}

void fd_exchange_reset(void)
{
	for (uint32_t i = 0; i < PENDING_DELETES_MAX; i++)
		atomic_store(&pending_deletes[i], 0);
	atomic_store(&pending_count, 0);
}
