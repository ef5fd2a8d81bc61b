#include "library/swap/fd_exchange_client.h"

#include <stdatomic.h>

#include "abi/shm/fd_exchange.h"
#include "library/sys/config.h"
#include "library/sys/exchange.h"
#include "library/sys/log.h"
#include "library/sys/sys.h"

#define PATIENCE_NS (2 * NS_PER_S)
#define UNDROPPED_MOST 64
#define DROP_EVERY_NS NS_PER_S

/* Keys that the daemon could not be told to drop; 0: unused. */
static _Atomic uint64_t undropped[UNDROPPED_MOST];
static _Atomic uint32_t undropped_count;
static uint64_t tried_ns; /* helper thread */

/* The reply has at most one descriptor, which is closed if ret_fd is NULL. */
static int send_request(enum sharing_op op, uint64_t key, uint64_t bytes, int give_fd,
			struct sharing_reply *ret, int *ret_fd)
{
	struct sharing_request request = {
		.magic = SHARING_MAGIC,
		.version = SHARING_VERSION,
		.op = op,
		.key = key,
		.bytes = bytes,
	};
	int fds[EXCHANGE_FDS_MAX];
	uint64_t held = exchange_block_signals();
	int error = exchange(config_socket(), PATIENCE_NS, &request, sizeof(request), give_fd, ret,
			     sizeof(*ret), fds);

	if (!error && (ret->magic != SHARING_MAGIC || ret->version != SHARING_VERSION))
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
	exchange_restore_signals(held);
	return error;
}

int sharing_give(uint64_t key, uint64_t bytes, int fd)
{
	struct sharing_reply reply;

	return send_request(SHARING_GIVE, key, bytes, fd, &reply, NULL);
}

int sharing_take(uint64_t key, uint64_t *ret_bytes, int *ret_fd)
{
	struct sharing_reply reply;
	int error = send_request(SHARING_TAKE, key, 0, -1, &reply, ret_fd);

	if (!error)
		*ret_bytes = reply.bytes;
	return error;
}

static int drop(uint64_t key)
{
	struct sharing_reply reply;

	return send_request(SHARING_DROP, key, 0, -1, &reply, NULL);
}

void sharing_drop(uint64_t key)
{
	int error = drop(key);

	for (uint32_t i = 0; error && i < UNDROPPED_MOST; i++) {
		uint64_t unused = 0;
		if (!atomic_compare_exchange_strong(&undropped[i], &unused, key))
			continue;
		atomic_fetch_add(&undropped_count, 1);
		return;
	}
	if (error)
		log_write("the daemon keeps memory that was freed, until this process ends (errno %d)",
			  -error);
}

void sharing_refresh(uint64_t now_ns)
{
	if (likely(!atomic_load(&undropped_count)) || now_ns - tried_ns < DROP_EVERY_NS)
		return;
	tried_ns = now_ns;
	for (uint32_t i = 0; i < UNDROPPED_MOST; i++) {
		uint64_t key = atomic_load(&undropped[i]);
		if (!key)
			continue;
		if (drop(key))
			return;
		atomic_store(&undropped[i], 0);
		atomic_fetch_sub(&undropped_count, 1);
	}
}

void sharing_reset(void)
{
	for (uint32_t i = 0; i < UNDROPPED_MOST; i++)
		atomic_store(&undropped[i], 0);
	atomic_store(&undropped_count, 0);
}
