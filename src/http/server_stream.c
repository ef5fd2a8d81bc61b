/* Sends streams of events: one part at a time, without waiting for any reader. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/http_server.h"
#include "http/server_inside.h"

#define BLOCK_BYTES ((size_t)16384)
/* send buffer for parts that a reader has not taken; the kernel doubles this */
#define KERNEL_BYTES 65536

struct server_part {
	unsigned references;
	size_t size;
	char bytes[];
};

struct server_part *server_part_new(size_t size)
{
	struct server_part *part = malloc(sizeof(*part) + size);
	if (part) {
		part->references = 1;
		part->size = size;
	}
	return part;
}

char *server_part_bytes(struct server_part *part)
{
	return part->bytes;
}

struct server_part *server_part_free(struct server_part *part)
{
	if (part && --part->references == 0)
		free(part);
	return NULL;
}

/* libmicrohttpd calls this for the stream's next bytes. */
static ssize_t read_stream(void *data, uint64_t position, char *to, size_t room)
{
	struct server_call *c = data;
	if (!c->part) {
		/* There is no part, or the kernel's buffer has all of it: suspend the connection until the next part comes. */
		server_set_stage(c, STAGE_STREAM);
		c->is_suspended = true;
		c->generation->server->mhd->suspend_connection(c->at);
		return 0;
	}
	size_t size = c->part->size - c->part_sent;
	size = size < room ? size : room;
	memcpy(to, c->part->bytes + c->part_sent, size);
	c->part_sent += size;
	if (c->part_sent == c->part->size)
		c->part = server_part_free(c->part);
	return (ssize_t)size;
}

struct MHD_Response *server_stream_begin(struct server_call *c, const char *type)
{
	const struct server *s = c->generation->server;
	int kept = KERNEL_BYTES;
	/* With the default of megabytes, a slow reader would get parts that are a minute old. */
	setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &kept, sizeof(kept));
	/* Set is_stream even if no response can be made, because the handler expects stream_ended. */
	c->is_stream = true;
	struct MHD_Response *response = s->mhd->create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, c, NULL);
	if (!response)
		return NULL;
	s->mhd->add_response_header(response, "Content-Type", type);
	server_add_headers(s, response);
	return response;
}

void server_stream_end(struct server_call *c)
{
	const struct server *s = c->generation->server;
	c->is_stream = false;
	c->part = server_part_free(c->part);
	if (s->config.stream_ended)
		s->config.stream_ended(s->config.data, c);
}

bool server_stream_is_ready(const struct server_call *c)
{
	return c->is_suspended;
}

int server_stream_send(struct server_call *c, struct server_part *part)
{
	if (!server_stream_is_ready(c))
		return -EAGAIN;
	part->references++;
	c->part = part;
	c->part_sent = 0;
	server_set_stage(c, STAGE_ANSWER);
	server_wake(c);
	return 0;
}
