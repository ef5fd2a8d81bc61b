/* Closing a socket with unread data: the peer must still get the last reply and then the end, not an error. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/closer.h"

/* In place of the C library's: no thread can be started. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
		   void *data)
{
	return EAGAIN;
}

static void test_unread_data_without_a_thread(void **state)
{
	char text[8] = "";
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(write(fds[0], "unread", 6), 6);
	assert_int_equal(write(fds[1], "reply", 5), 5);
	closer_close(0, fds[1]);
	assert_int_equal(read(fds[0], text, sizeof(text)), 5);
	assert_string_equal(text, "reply");
	assert_int_equal(read(fds[0], text, sizeof(text)), 0);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_unread_data_without_a_thread) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
