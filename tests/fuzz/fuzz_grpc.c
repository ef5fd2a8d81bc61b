/*
 * What a peer sends to the gRPC server, as it arrives: bytes of HTTP/2. By the first byte with the preface and empty
 * SETTINGS before them, so that frames are reached at once; its other bits are how many bytes come at a time.
 */
#include "fuzz.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/grpc_inside.h"
#include "net/grpc_server.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"
#define MOST_BYTES 65536 /* what the socket takes at once */

static struct loop *loop;
static struct grpc_server *server;
static struct grpc_call *kept[64];
static unsigned kept_count;

static void echo(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	struct grpc_message *m = grpc_message_new(size);
	FUZZ_CHECK(size <= server->service.limits.message_bytes);
	if (size)
		memcpy(grpc_message_data(m), message, size);
	grpc_call_send(call, m);
	grpc_call_end(call, GRPC_OK, "and \x01 a text");
	grpc_message_unref(m);
}

static void gone(void *data, struct grpc_call *call)
{
	for (unsigned i = 0; i < kept_count; i++)
		if (kept[i] == call)
			kept[i--] = kept[--kept_count];
}

static void watch(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	struct grpc_message *m = grpc_message_new(100000);
	memset(grpc_message_data(m), 0, 100000);
	FUZZ_CHECK(kept_count < 64);
	kept[kept_count++] = call;
	grpc_call_keep(call, gone, NULL);
	grpc_call_send(call, m);
	grpc_message_unref(m);
}

static const struct grpc_method methods[] = { { "/t/Echo", echo }, { "/t/Watch", watch } };

/* Once; it lives as long as the process. */
static void start(void)
{
	struct grpc_service service = { .methods = methods,
					.method_count = 2,
					.limits = grpc_limits_default() };
	service.limits.message_bytes = 4096;
	service.limits.held_bytes = 8192;
	/* Nobody comes by a listening socket: connections are made by hand. */
	if (loop_new(&loop, NULL) < 0 ||
	    grpc_server_new(loop, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), &service, &server, NULL) <
		    0)
		abort();
}

static void turn(void)
{
	for (unsigned i = 0; i < 4; i++)
		FUZZ_CHECK(loop_step(loop, 0) == 0);
}

static void give(int fd, const uint8_t *data, size_t size, size_t step)
{
	for (size_t at = 0; at < size; at += step) {
		ssize_t n = send(fd, data + at, size - at < step ? size - at : step,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return;
		turn();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd[2];
	if (size < 1 || size > MOST_BYTES)
		return 0;
	if (!server)
		start();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) < 0 ||
	    grpc_connection_new(server, fd[0]) < 0)
		abort();
	if (data[0] & 1)
		give(fd[1], (const uint8_t *)PREFACE, sizeof(PREFACE) - 1, sizeof(PREFACE));
	/* At once, or in some pieces. */
	give(fd[1], data + 1, size - 1, data[0] >> 1 ? size / (size_t)(data[0] >> 1) + 1 : size);
	struct grpc_message *m = grpc_message_new(10);
	memset(grpc_message_data(m), 0, 10);
	for (unsigned i = 0; i < kept_count; i++)
		grpc_call_send(kept[i], m);
	grpc_message_unref(m);
	turn();
	close(fd[1]);
	turn();
	FUZZ_CHECK(grpc_server_connections(server) == 0);
	FUZZ_CHECK(server->held_bytes == 0);
	FUZZ_CHECK(kept_count == 0);
	return 0;
}
