/* The client against a daemon of a few lines: a thread that answers what the test says. */
#include "../cli/test.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "client/client.h"
#include "client/pause.h"
#include "../scratch.h"

static char requests[4096];

/* Replies, one for each request; the daemon hangs up after the last. */
struct daemon {
	int listener;
	const char *const *replies;
};

static void *serve(void *data)
{
	struct daemon *daemon = data;
	int fd = accept(daemon->listener, NULL, NULL);

	*requests = '\0';
	for (size_t i = 0; daemon->replies[i]; i++) {
		size_t used = strlen(requests);
		ssize_t n;

		do {
			n = read(fd, requests + used, sizeof(requests) - used - 1);
			used += n > 0 ? (size_t)n : 0;
			requests[used] = '\0';
		} while (n > 0 && requests[used - 1] != '\n');
		/* In two parts, so that a line does not come in one read. */
		if (write(fd, daemon->replies[i], 3) < 0)
			break;
		usleep(10000);
		if (write(fd, daemon->replies[i] + 3, strlen(daemon->replies[i]) - 3) < 0)
			break;
	}
	close(fd);
	return NULL;
}

static int listen_there(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/allotd.sock", scratch);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static void test_requests(void **state)
{
	static const char *const replies[] = {
		"{\"ok\":true,\"pid\":7}\n",
		"{\"ok\":false,\"error\":\"name taken\",\"errno\":17}\n",
		"not json\n",
		NULL,
	};
	struct daemon daemon = { .listener = listen_there(), .replies = replies };
	struct client *client;
	json_t *reply = NULL;
	struct error err;
	pthread_t thread;

	pthread_create(&thread, NULL, serve, &daemon);
	assert_int_equal(client_connect(scratch, &client, &err), 0);
	assert_string_equal(client_run_dir(client), scratch);
	assert_int_equal(client_request(client, "hello", json_object(), &reply, &err), 0);
	assert_int_equal(json_integer_value(json_object_get(reply, "pid")), 7);
	json_decref(reply);
	assert_int_equal(client_request(client, "create", json_pack("{s:s}", "name", "a"), NULL,
					&err),
			 -EEXIST);
	assert_string_equal(err.text, "name taken");
	assert_int_equal(client_request(client, "list", json_object(), NULL, &err), -EPROTO);
	assert_int_equal(client_request(client, "list", json_object(), NULL, &err), -ECONNRESET);
	pthread_join(thread, NULL);
	assert_non_null(strstr(requests, "\"version\":1"));
	assert_non_null(strstr(requests, "\"op\":\"hello\""));
	assert_non_null(strstr(requests, "\"name\":\"a\""));
	client_free(client);
	close(daemon.listener);
}

static unsigned failing_allocations;

static void *allocate(size_t size)
{
	if (!failing_allocations)
		return malloc(size);
	failing_allocations--;
	return NULL;
}

/* A request whose members could not be made is not sent without them. */
static void test_no_memory_for_the_members(void **state)
{
	static const char *const replies[] = { "{\"ok\":true}\n", NULL };
	const struct client_pause_options options = { 0 };
	struct daemon daemon = { .listener = listen_there(), .replies = replies };
	struct client *client;
	struct error err;
	pthread_t thread;

	pthread_create(&thread, NULL, serve, &daemon);
	assert_int_equal(client_connect(scratch, &client, &err), 0);
	json_set_alloc_funcs(allocate, free);
	failing_allocations = 1;
	assert_int_equal(client_pause(client, "pause", "a", &options, &err), -ENOMEM);
	json_set_alloc_funcs(malloc, free);
	assert_int_equal(client_pause(client, "pause", "a", &options, &err), 0);
	client_free(client);
	pthread_join(thread, NULL);
	assert_non_null(strstr(requests, "\"name\":\"a\""));
	close(daemon.listener);
}

static void test_nobody_there(void **state)
{
	char path[128];
	struct client *client;
	struct error err;

	assert_int_equal(client_connect("/nonexistent", &client, &err), -ENOENT);
	assert_string_equal(err.text, "no daemon runs in /nonexistent");
	close(listen_there()); /* a socket that a dead daemon left */
	assert_int_equal(client_connect(scratch, &client, &err), -ENOENT);
	if (geteuid() != 0) {
		snprintf(path, sizeof(path), "%s/allotd.sock", scratch);
		chmod(path, 0);
		assert_int_equal(client_connect(scratch, &client, &err), -EACCES);
	}
	assert_null(client_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_requests, make_scratch, remove_scratch),
		cmocka_unit_test_setup_teardown(test_no_memory_for_the_members, make_scratch,
						remove_scratch),
		cmocka_unit_test_setup_teardown(test_nobody_there, make_scratch, remove_scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
