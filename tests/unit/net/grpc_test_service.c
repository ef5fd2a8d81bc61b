#include "grpc_test_service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/grpc_server.h"
#include "net/listen.h"

char server_path[64];
static struct loop *loop;
static struct grpc_server *server;
static int quit_fd, publish_fd;
static pthread_t thread;
static struct grpc_call *watchers[256];
static unsigned watcher_count, published;
atomic_uint ended_watch_count;

static void reply(struct grpc_call *call, const void *data, size_t size)
{
	struct grpc_message *m = grpc_message_new(size);
	if (size)
		memcpy(grpc_message_data(m), data, size);
	grpc_call_send(call, m);
	grpc_call_end(call, GRPC_OK, NULL);
	grpc_message_unref(m);
}

static void echo(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	reply(call, message, size);
}

static void refuse(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	grpc_call_end(call, GRPC_FAILED_PRECONDITION, "no: 5 % of \xc3\xbc\nare gone");
}

static void forget(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
}

static void watcher_gone(void *data, struct grpc_call *call)
{
	for (unsigned i = 0; i < watcher_count; i++)
		if (watchers[i] == call)
			watchers[i--] = watchers[--watcher_count];
	atomic_fetch_add(&ended_watch_count, 1);
}

/* The message with the last number: 8 KiB, so that a slow reader's window is soon full. */
static struct grpc_message *number_message(void)
{
	struct grpc_message *m = grpc_message_new(8192);
	memset(grpc_message_data(m), 0, 8192);
	memcpy(grpc_message_data(m), &published, sizeof(published));
	return m;
}

static void watch(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	struct grpc_message *m = number_message();
	assert_true(watcher_count < 256);
	watchers[watcher_count++] = call;
	grpc_call_keep(call, watcher_gone, NULL);
	grpc_call_send(call, m);
	grpc_message_unref(m);
}

static void publish(void *data, uint32_t events)
{
	uint64_t n;
	if (read(publish_fd, &n, sizeof(n)) < 0)
		return;
	for (; n; n--) {
		published++;
		struct grpc_message *m = number_message();
		for (unsigned i = 0; i < watcher_count; i++)
			grpc_call_send(watchers[i], m);
		grpc_message_unref(m);
	}
}

static void quit(void *data, uint32_t events)
{
	loop_quit(loop);
}

static const struct grpc_method methods[] = {
	{ "/test.Test/Echo", echo },
	{ "/test.Test/Refuse", refuse },
	{ "/test.Test/Forget", forget },
	{ "/test.Test/Watch", watch },
};

static void *serve(void *data)
{
	loop_run(loop);
	server = grpc_server_free(server);
	return NULL;
}

static struct loop_source *quit_source, *publish_source;

int server_setup(void **state)
{
	struct grpc_service service = { .methods = methods,
					.method_count = 4,
					.limits = grpc_limits_default() };
	struct error err;
	service.limits.connections = LIMIT_CONNECTIONS;
	service.limits.message_bytes = LIMIT_BYTES;
	/* Longer than a busy machine may pause this process. */
	service.limits.arrive_ns = 1500 * MS;
	service.limits.stall_ns = 1500 * MS;
	snprintf(server_path, sizeof(server_path), "/tmp/allot-grpc-%d", (int)getpid());
	int fd = listen_bind(server_path, SOCK_STREAM, &err);
	assert_true(fd >= 0);
	assert_int_equal(listen(fd, 64), 0);
	quit_fd = eventfd(0, EFD_NONBLOCK);
	publish_fd = eventfd(0, EFD_NONBLOCK);
	watcher_count = published = 0;
	atomic_store(&ended_watch_count, 0);
	assert_int_equal(loop_new(&loop, &err), 0);
	assert_int_equal(loop_add(loop, quit_fd, EPOLLIN, quit, NULL, &quit_source), 0);
	assert_int_equal(loop_add(loop, publish_fd, EPOLLIN, publish, NULL, &publish_source), 0);
	assert_int_equal(grpc_server_new(loop, fd, &service, &server, &err), 0);
	return pthread_create(&thread, NULL, serve, NULL);
}

int server_teardown(void **state)
{
	uint64_t one = 1;
	assert_int_equal(write(quit_fd, &one, sizeof(one)), sizeof(one));
	pthread_join(thread, NULL);
	loop_remove(quit_source);
	loop_remove(publish_source);
	loop_free(loop);
	close(quit_fd);
	close(publish_fd);
	return unlink(server_path);
}

void publish_numbers(uint64_t times)
{
	assert_int_equal(write(publish_fd, &times, sizeof(times)), sizeof(times));
}

void wait_for_count(atomic_uint *counter, unsigned least)
{
	uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
	while (atomic_load(counter) < least && clock_now_ns() < end_ns)
		usleep(1000);
	assert_true(atomic_load(counter) >= least);
}

struct grpc_reply call_unary(const char *method, const void *message, size_t size)
{
	struct net_link link;
	struct grpc_reply r = { 0 };
	struct grpc_request q = {
		.method = method, .message = message, .size = size, .most_bytes = 1 << 20
	};
	assert_int_equal(net_link_open(&link, server_path, -1, clock_now_ns() + PATIENCE_NS), 0);
	assert_int_equal(grpc_call_unary(&link, &q, &r), 0);
	net_link_close(&link);
	return r;
}

void check_echo(size_t size)
{
	uint8_t *message = calloc(1, size + 1);
	for (size_t i = 0; i < size; i++)
		message[i] = (uint8_t)(i * 7);
	struct grpc_reply r = call_unary("/test.Test/Echo", message, size);
	assert_int_equal(r.status, GRPC_OK);
	assert_int_equal(r.size, size);
	if (size)
		assert_memory_equal(r.message, message, size);
	free(r.message);
	free(message);
}
