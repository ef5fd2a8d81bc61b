/* Connecting to a socket on which more wait than it listens to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/link.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)
#define WAITING_MAX 64

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static int listener, waiting[WAITING_MAX];
static unsigned waiting_count;

/* Fills the socket's queue. */
static int setup(void **state)
{
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/allot-link-%d", (int)getpid());
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 0), 0);
	for (waiting_count = 0; waiting_count < WAITING_MAX; waiting_count++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		waiting[waiting_count] = fd;
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			continue;
		assert_int_equal(errno, EAGAIN);
		close(fd);
		return 0;
	}
	return -1;
}

static int teardown(void **state)
{
	while (waiting_count)
		close(waiting[--waiting_count]);
	close(listener);
	return unlink(address.sun_path);
}

static void *accept_later(void *data)
{
	usleep(30000);
	close(accept(listener, NULL, NULL));
	return NULL;
}

static void test_waits_for_room(void **state)
{
	struct net_link link;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, accept_later, NULL), 0);
	assert_int_equal(net_link_open(&link, address.sun_path, -1, clock_now_ns() + PATIENCE_NS),
			 0);
	pthread_join(thread, NULL);
	net_link_close(&link);
}

static void test_not_for_ever(void **state)
{
	struct net_link link;
	uint64_t end_ns = clock_now_ns() + 30 * NSEC_PER_MSEC;

	assert_int_equal(net_link_open(&link, address.sun_path, -1, end_ns), -ETIMEDOUT);
	assert_true(clock_now_ns() >= end_ns);
}

static void test_until_it_is_told(void **state)
{
	struct net_link link;
	int stop = eventfd(1, EFD_CLOEXEC);

	assert_int_equal(net_link_open(&link, address.sun_path, stop, clock_now_ns() + PATIENCE_NS),
			 -ECANCELED);
	close(stop);
}

static void test_nobody_listens(void **state)
{
	struct net_link link;
	char much[200];

	assert_int_equal(net_link_open(&link, "/no/such/socket", -1, clock_now_ns() + PATIENCE_NS),
			 -ENOENT);
	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	assert_int_equal(net_link_open(&link, much, -1, clock_now_ns() + PATIENCE_NS),
			 -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waits_for_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_for_ever, setup, teardown),
		cmocka_unit_test_setup_teardown(test_until_it_is_told, setup, teardown),
		cmocka_unit_test(test_nobody_listens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
