/* A gRPC server in a thread of the test, for tests of clients that block. Only one at a time. */
#pragma once

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/grpc_server.h"
#include "net/listen.h"

static struct served {
	const char *path;
	struct loop *loop;
	struct loop_source *quit_source;
	struct grpc_server *server;
	int quit_fd;
	pthread_t thread;
} served;

static void served_quit(void *data, uint32_t events)
{
	loop_quit(served.loop);
}

static void *served_run(void *data)
{
	loop_run(served.loop);
	served.server = grpc_server_free(served.server);
	return NULL;
}

/* Starts the server on a socket at `path`. `path` and `method` must stay valid until served_end(). */
static void served_start(const char *path, const struct grpc_method *method)
{
	struct grpc_service service = { .methods = method,
					.method_count = 1,
					.limits = grpc_limits_default() };
	struct error err;
	int fd = listen_bind(path, SOCK_STREAM, &err);
	served.path = path;
	assert_int_equal(listen(fd, 8), 0);
	served.quit_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(loop_new(&served.loop, &err), 0);
	assert_int_equal(loop_add(served.loop, served.quit_fd, EPOLLIN, served_quit, NULL,
				  &served.quit_source),
			 0);
	assert_int_equal(grpc_server_new(served.loop, fd, &service, &served.server, &err), 0);
	assert_int_equal(pthread_create(&served.thread, NULL, served_run, NULL), 0);
}

static void served_end(void)
{
	uint64_t one = 1;
	assert_int_equal(write(served.quit_fd, &one, sizeof(one)), sizeof(one));
	pthread_join(served.thread, NULL);
	loop_remove(served.quit_source);
	loop_free(served.loop);
	close(served.quit_fd);
	unlink(served.path);
}

/* Answers with these bytes. */
static void served_reply(struct grpc_call *call, const void *data, size_t size)
{
	struct grpc_message *m = grpc_message_new(size);
	if (size)
		memcpy(grpc_message_data(m), data, size);
	grpc_call_send(call, m);
	grpc_call_end(call, GRPC_OK, NULL);
	grpc_message_unref(m);
}
