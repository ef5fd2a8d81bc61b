/* Descriptors that the daemon keeps: if a drop can't be sent to the daemon, it is sent later. */
#include "../test.h"

#include <errno.h>
#include <string.h>

#include "abi/shm/fd_exchange.h"
#include "library/swap/fd_exchange_client.h"
#include "library/sys/config.h"
#include "library/sys/exchange.h"
#include "library/sys/sys.h"

static uint64_t dropped[100]; /* by the daemon */
static unsigned count, requests;
static int error; /* of the exchange; 0 if the daemon answers */

const char *config_socket(void)
{
	return "/nowhere";
}

struct exchange_saved exchange_begin(void)
{
	return (struct exchange_saved){ 0 };
}

void exchange_end(struct exchange_saved saved)
{
}

int exchange(const char *path, uint64_t patience_ns, const void *request, size_t request_size,
	     int give_fd, void *ret_reply, size_t reply_size, int ret_fds[EXCHANGE_FDS_MAX])
{
	const struct fd_exchange_request *asked = request;
	const struct fd_exchange_reply reply = { .magic = FD_EXCHANGE_MAGIC,
						 .version = FD_EXCHANGE_VERSION };

	for (int i = 0; i < EXCHANGE_FDS_MAX; i++)
		ret_fds[i] = -1;
	requests++;
	if (error)
		return error;
	assert_int_equal(asked->op, FD_EXCHANGE_DELETE);
	dropped[count++] = asked->key;
	memcpy(ret_reply, &reply, sizeof(reply));
	return 0;
}

static void test_what_could_not_be_dropped(void **state)
{
	uint64_t now_ns = 100 * NS_PER_S;

	fd_exchange_delete(1);
	assert_int_equal(count, 1);
	error = -ETIMEDOUT;
	fd_exchange_delete(2);
	fd_exchange_delete(3);
	requests = 0;
	/* Once a second. */
	fd_exchange_retry(now_ns);
	fd_exchange_retry(now_ns + NS_PER_MS);
	assert_int_equal(requests, 1);
	error = 0;
	fd_exchange_retry(now_ns + 2 * NS_PER_S);
	assert_int_equal(count, 3);
	assert_int_equal(dropped[1], 2);
	assert_int_equal(dropped[2], 3);
	fd_exchange_retry(now_ns + 4 * NS_PER_S);
	assert_int_equal(count, 3);
	/* A forked child has given nothing. */
	error = -ECONNREFUSED;
	fd_exchange_delete(4);
	fd_exchange_reset();
	error = 0;
	fd_exchange_retry(now_ns + 6 * NS_PER_S);
	assert_int_equal(count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_could_not_be_dropped),
	};

	return cmocka_run_group_tests_name("fd_exchange_client", tests, NULL, NULL);
}
