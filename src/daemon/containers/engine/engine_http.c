#include "daemon/containers/engine/engine_http.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define HEAD_MAX 512
#define CHUNK 4096

/* Returns NNN of "HTTP/1.x NNN ...", or -EPROTO. */
static int read_status(const char *text, size_t size)
{
	const char *at = text + strlen("HTTP/1.x ");
	if (size < strlen("HTTP/1.x NNN") || memcmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ')
		return -EPROTO;
	for (int i = 0; i < 3; i++)
		if (!isdigit((unsigned char)at[i]))
			return -EPROTO;
	return (at[0] - '0') * 100 + (at[1] - '0') * 10 + (at[2] - '0');
}

static bool is_encoding(const char *line, size_t size)
{
	static const char *const names[] = { "transfer-encoding:", "content-encoding:" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (size >= strlen(names[i]) && !strncasecmp(line, names[i], strlen(names[i])))
			return true;
	return false;
}

int engine_http_parse(const char *text, size_t size, size_t *ret_body)
{
	int status = read_status(text, size);
	const char *line = memchr(text, '\n', size), *end = text + size;
	if (status < 0)
		return status;
	if (status != 200)
		return status == 404 ? -ENOENT : -EPROTO;
	while (line && ++line < end) {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		if (*line == '\n' || (*line == '\r' && next == line + 1)) {
			*ret_body = (size_t)(next + 1 - text);
			return 0;
		}
		/* Refuse an encoded body: our request allowed no encoding. */
		if (is_encoding(line, (size_t)(end - line)))
			return -EPROTO;
		line = next;
	}
	return -EPROTO;
}

/* Reads until the peer closes the connection. *ret is followed by a NUL. */
static int read_all(const struct net_link *link, size_t most_bytes, char **ret, size_t *ret_size)
{
	cleanup_free char *text = NULL;
	size_t size = 0, room = 0;
	for (;;) {
		if (room - size < CHUNK) {
			room = room ? room * 2 : 4 * CHUNK;
			char *more = realloc(text, room);
			if (!more)
				return -ENOMEM;
			text = more;
		}
		ssize_t n = net_link_read(link, text + size, room - size - 1);
		if (n < 0)
			return (int)n;
		size += (size_t)n;
		if (size > most_bytes)
			return -EMSGSIZE;
		if (n == 0)
			break;
	}
	text[size] = '\0';
	*ret = steal_pointer(&text);
	*ret_size = size;
	return 0;
}

int engine_http_get(const struct net_link *link, const char *path, size_t most_bytes,
		    char **ret_body, size_t *ret_size)
{
	char head[HEAD_MAX];
	cleanup_free char *text = NULL;
	size_t size = 0, body = 0;
	int n = snprintf(head, sizeof(head), "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
	if (n < 0 || (size_t)n >= sizeof(head))
		return -ENAMETOOLONG;
	int r = net_link_write(link, head, (size_t)n);
	if (r >= 0)
		r = read_all(link, most_bytes, &text, &size);
	if (r >= 0)
		r = engine_http_parse(text, size, &body);
	if (r < 0)
		return r;
	memmove(text, text + body, size - body + 1);
	*ret_body = steal_pointer(&text);
	*ret_size = size - body;
	return 0;
}
