/* A node's HTTP replies, over a unix socket in its run directory. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/export/metrics/metrics.h"

static void socket_path(const struct fixture *f, char path[108])
{
	snprintf(path, 108, "%s/m", f->dir);
}

/* The fixture's node again, with metrics. */
static void serve(struct fixture *f)
{
	char listen[160] = "unix:";
	struct error err = { 0 };
	socket_path(f, listen + 5);
	assert_int_equal(
		settings_set(&config_settings, &f->node->config, "metrics_listen", listen, &err), 0);
	if (metrics_start(f->node, &f->node->metrics, &err) < 0)
		fail_msg("%s", err.text);
}

/* The status, and the body in text. */
static int get(struct fixture *f, const char *path, char *text, size_t size)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	char request[128];
	size_t used = 0;
	int status = 0;
	socket_path(f, to.sun_path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", path);
	assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	for (unsigned i = 0; i < 2000; i++) {
		ssize_t n = recv(fd, text + used, size - used - 1, MSG_DONTWAIT);
		if (n == 0)
			break;
		if (n > 0)
			used += (size_t)n;
		else
			fixture_turn(f, 1);
	}
	text[used] = '\0';
	close(fd);
	assert_int_equal(sscanf(text, "HTTP/1.%*d %d", &status), 1);
	const char *body = strstr(text, "\r\n\r\n");
	assert_non_null(body);
	memmove(text, body + 4, strlen(body + 4) + 1);
	return status;
}

static void test_ready_and_not(void **state)
{
	struct fixture *f = *state;
	char text[1024];
	serve(f);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"devices\":[{"
				  "\"index\":0,\"memory_bytes\":1048576}]}"));
	assert_int_equal(get(f, "/readyz", text, sizeof(text)), 200);
	assert_string_equal(text, "ready\n");
	/* Until processes have moved over, it is unknown which of them use how much. */
	struct tenant *t = node_find_tenant(f->node, "a");
	t->adopting = true;
	assert_int_equal(get(f, "/readyz", text, sizeof(text)), 503);
	assert_string_equal(text,
			    "not ready: processes of the previous daemon have yet to connect\n");
	assert_int_equal(get(f, "/healthz", text, sizeof(text)), 200);
	t->adopting = false;
	assert_int_equal(get(f, "/readyz", text, sizeof(text)), 200);
}

static void test_a_page_is_good_for_a_moment(void **state)
{
	struct fixture *f = *state;
	static char first[1 << 16], second[1 << 16];
	serve(f);
	assert_int_equal(get(f, "/metrics", first, sizeof(first)), 200);
	assert_non_null(strstr(first, "\nallot_metrics_pages_total 0\n"));
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"devices\":[{"
				  "\"index\":0,\"memory_bytes\":1048576}]}"));
	fixture_turn(f, 150);
	assert_int_equal(get(f, "/metrics", second, sizeof(second)), 200);
	assert_non_null(strstr(second, "\nallot_metrics_pages_total 1\n"));
	assert_non_null(strstr(second, "tenant=\"a\""));
}

static void test_off(void **state)
{
	struct fixture *f = *state;
	struct metrics *none = NULL;
	struct error err = { 0 };
	assert_null(f->node->metrics);
	assert_int_equal(metrics_start(f->node, &none, &err), 0);
	assert_null(none);
	assert_null(metrics_stop(NULL));
}

static void test_the_socket_is_removed_with_the_daemon(void **state)
{
	struct fixture *f = *state;
	char path[108];
	socket_path(f, path);
	serve(f);
	assert_int_equal(access(path, F_OK), 0);
	fixture_stop(f);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ready_and_not, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_page_is_good_for_a_moment, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_off, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_the_socket_is_removed_with_the_daemon,
						fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
