/* Messages to a service manager: the test's own socket stands in for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/util/service_notify.h"
#include "net/loop.h"

static int manager = -1;
static struct loop *loop;

/* '@' at its beginning: an abstract name. */
static void listen_at(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

	memcpy(address.sun_path, name, strlen(name));
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(manager, (struct sockaddr *)&address, size), 0);
	setenv("NOTIFY_SOCKET", name, 1);
}

static int start(void **state)
{
	struct error err;
	char name[64];

	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	snprintf(name, sizeof(name), "@allot-test-service-%d", (int)getpid());
	listen_at(name);
	return loop_new(&loop, &err);
}

static int end(void **state)
{
	close(manager);
	loop = loop_free(loop);
	return 0;
}

static const char *heard(void)
{
	static char text[512];
	ssize_t n = recv(manager, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static void test_ready_and_end(void **state)
{
	char ready[64];
	struct service *service = service_open();

	assert_non_null(service);
	/* A process that it starts is not the service. */
	assert_null(getenv("NOTIFY_SOCKET"));
	service_ready(service, loop, "2 GPUs");
	snprintf(ready, sizeof(ready), "READY=1\nMAINPID=%d\nSTATUS=2 GPUs", (int)getpid());
	assert_string_equal(heard(), ready);
	/* No keep-alive messages were requested. */
	assert_int_equal(loop_step(loop, 20), 0);
	assert_string_equal(heard(), "");
	assert_null(service_close(service));
	assert_string_equal(heard(), "STOPPING=1");
}

static void test_signs_of_life(void **state)
{
	setenv("WATCHDOG_USEC", "20000", 1);
	struct service *service = service_open();

	service_ready(service, loop, "");
	heard();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(loop_step(loop, 10000), 0);
		assert_string_equal(heard(), "WATCHDOG=1");
	}
	service_close(service);
}

static void test_a_path(void **state)
{
	char path[64];

	close(manager);
	snprintf(path, sizeof(path), "/tmp/allot-test-service-%d", (int)getpid());
	listen_at(path);
	struct service *service = service_open();
	unlink(path);
	assert_non_null(service);
	service_close(service);
	assert_string_equal(heard(), "STOPPING=1");
}

static void test_no_manager(void **state)
{
	char much[200] = "/";

	memset(much + 1, 'x', sizeof(much) - 2);
	static const char *const names[] = { "", "@", "relative", "/no/such/socket" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		setenv("NOTIFY_SOCKET", names[i], 1);
		assert_null(service_open());
	}
	setenv("NOTIFY_SOCKET", much, 1);
	assert_null(service_open());
	unsetenv("NOTIFY_SOCKET");
	assert_null(service_open());
	service_ready(NULL, loop, "");
	assert_null(service_close(NULL));
}

/* A manager that reads nothing loses messages; the daemon loses no time. */
static void test_a_manager_that_does_not_read(void **state)
{
	struct service *service = service_open();

	for (int i = 0; i < 10000; i++)
		service_ready(service, loop, "again");
	service_close(service);
}

static void test_periods(void **state)
{
	assert_int_equal(service_watchdog_ns("30000000", NULL, 7), 30000000000);
	assert_int_equal(service_watchdog_ns("30000000", "7", 7), 30000000000);
	assert_int_equal(service_watchdog_ns("30000000", "8", 7), 0);
	assert_int_equal(service_watchdog_ns("30000000", "", 7), 0);
	assert_int_equal(service_watchdog_ns(NULL, "7", 7), 0);
	assert_int_equal(service_watchdog_ns("", NULL, 7), 0);
	assert_int_equal(service_watchdog_ns("0", NULL, 7), 0);
	assert_int_equal(service_watchdog_ns("-1", NULL, 7), 0);
	assert_int_equal(service_watchdog_ns("99999999999999999999", NULL, 7), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ready_and_end, start, end),
		cmocka_unit_test_setup_teardown(test_signs_of_life, start, end),
		cmocka_unit_test_setup_teardown(test_a_path, start, end),
		cmocka_unit_test_setup_teardown(test_no_manager, start, end),
		cmocka_unit_test_setup_teardown(test_a_manager_that_does_not_read, start, end),
		cmocka_unit_test(test_periods),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
