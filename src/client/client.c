#include "client/client.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/paths.h"

#define REPLY_TIMEOUT_NS (10 * NSEC_PER_SEC)
#define REPLY_MAX_BYTES (16U << 20)

struct client {
	int fd;
	char run_dir[PATHS_MAX];
	/* bytes received after the last reply, in buffer[0..used); usually there are none */
	char *buffer;
	size_t used, size;
	int fds[CLIENT_FDS_MAX]; /* received with the last reply */
	size_t fd_count;
};

static void close_fds(struct client *client)
{
	while (client->fd_count)
		close(client->fds[--client->fd_count]);
}

struct client *client_free(struct client *client)
{
	if (!client)
		return NULL;
	close_fd(&client->fd);
	close_fds(client);
	free(client->buffer);
	free(client);
	return NULL;
}

int client_fd(const struct client *client)
{
	return client->fd;
}

const char *client_run_dir(const struct client *client)
{
	return client->run_dir;
}

static int connect_socket(const char *run_dir, int *ret_fd, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_fd int fd = -1;
	int r = paths_join(run_dir, "allotd.sock", address.sun_path, sizeof(address.sun_path), err);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set_errno(err, errno, "socket");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == ECONNREFUSED || errno == ENOENT || errno == ENOTDIR)
			return error_set(err, ENOENT, "no daemon runs in %s", run_dir);
		if (errno == EACCES || errno == EPERM)
			return error_set(
				err, EACCES,
				"%s: permission denied; ask an administrator to add you to the group of "
				"this socket",
				address.sun_path);
		return error_set_errno(err, errno, "%s", address.sun_path);
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* Anyone can create a socket in /tmp, so the peer must be root or this user. */
static int check_peer(int fd, const char *run_dir, struct error *err)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return error_set_errno(err, errno, "SO_PEERCRED");
	if (peer.uid != 0 && peer.uid != geteuid())
		return error_set(err, EPERM,
				 "%s: the daemon there belongs to uid %u, not to you or root; name "
				 "another directory by --run-dir",
				 run_dir, (unsigned int)peer.uid);
	return 0;
}

int client_connect(const char *run_dir, struct client **ret_client, struct error *err)
{
	cleanup_client struct client *client = calloc(1, sizeof(*client));
	int r;

	if (!client)
		return error_set(err, ENOMEM, "out of memory");
	client->fd = -1;
	if (strlen(run_dir) >= sizeof(client->run_dir))
		return error_set(
			err, ENAMETOOLONG,
			"'%.60s...': the path of a run directory must have at most %zu bytes",
			run_dir, sizeof(client->run_dir) - 1);
	strcpy(client->run_dir, run_dir);
	r = connect_socket(run_dir, &client->fd, err);
	if (r < 0)
		return r;
	r = check_peer(client->fd, run_dir, err);
	if (r < 0)
		return r;
	*ret_client = steal_pointer(&client);
	return 0;
}

static int gone(struct client *client, struct error *err)
{
	return error_set(err, ECONNRESET,
			 "the daemon in %s closed the connection: try again; if this goes on, see "
			 "its log",
			 client->run_dir);
}

static int wait_for(struct client *client, short events, uint64_t deadline_ns, struct error *err)
{
	for (;;) {
		struct pollfd p = { .fd = client->fd, .events = events };
		uint64_t now_ns = clock_now_ns();
		int n;

		if (now_ns >= deadline_ns)
			return error_set(err, ETIMEDOUT,
					 "the daemon in %s has not answered for 10 s: if this goes "
					 "on, see its log, or restart it",
					 client->run_dir);
		n = poll(&p, 1, (int)((deadline_ns - now_ns) / NSEC_PER_MSEC) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return error_set_errno(err, errno, "poll");
	}
}

static int send_all(struct client *client, const char *text, size_t length, uint64_t deadline_ns,
		    struct error *err)
{
	while (length) {
		ssize_t n = send(client->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			text += n;
			length -= (size_t)n;
		} else if (errno == EAGAIN) {
			int r = wait_for(client, POLLOUT, deadline_ns, err);

			if (r < 0)
				return r;
		} else if (errno != EINTR) {
			return gone(client, err);
		}
	}
	return 0;
}

static int send_request(struct client *client, const char *op, json_t *body, uint64_t deadline_ns,
			struct error *err)
{
	cleanup_json json_t *request = body;
	cleanup_free char *text = NULL;
	size_t length;

	if (!request ||
	    json_object_set_new(request, "version", json_integer(CLIENT_PROTOCOL_VERSION)) ||
	    json_object_set_new(request, "op", json_string(op)))
		return error_set(err, ENOMEM, "out of memory");
	text = json_dumps(request, JSON_COMPACT);
	if (!text)
		return error_set(err, ENOMEM, "out of memory");
	length = strlen(text);
	text[length] = '\n'; /* replaces the NUL */
	return send_all(client, text, length + 1, deadline_ns, err);
}

static int grow(struct client *client, struct error *err)
{
	size_t size = client->size ? client->size * 2 : 4096;
	char *buffer;

	if (size > REPLY_MAX_BYTES)
		return error_set(
			err, EMSGSIZE,
			"the daemon's reply is longer than %u MiB: check that the socket is allotd's and that allotd has this program's version",
			REPLY_MAX_BYTES >> 20);
	buffer = realloc(client->buffer, size);
	if (!buffer)
		return error_set(err, ENOMEM, "out of memory");
	client->buffer = buffer;
	client->size = size;
	return 0;
}

static void keep_fds(struct client *client, struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (client->fd_count < CLIENT_FDS_MAX)
				client->fds[client->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

/* Like recv(), without blocking. Stores received descriptors in client->fds. */
static ssize_t receive(struct client *client)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(CLIENT_FDS_MAX * sizeof(int))];
	} control;
	struct iovec part = { client->buffer + client->used, client->size - client->used };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof(control.space) };
	ssize_t n = recvmsg(client->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n >= 0)
		keep_fds(client, &message);
	return n;
}

size_t client_take_fds(struct client *client, int *ret_fds, size_t most)
{
	size_t count = client->fd_count < most ? client->fd_count : most;

	memcpy(ret_fds, client->fds, count * sizeof(int));
	client->fd_count -= count;
	memmove(client->fds, client->fds + count, client->fd_count * sizeof(int));
	return count;
}

/* Reads until the buffer contains a whole line. *ret_length is that line's length without its newline. */
static int receive_line(struct client *client, uint64_t deadline_ns, size_t *ret_length,
			struct error *err)
{
	size_t searched = 0;

	for (;;) {
		char *end = client->used > searched ? memchr(client->buffer + searched, '\n',
							     client->used - searched)
						    : NULL;
		ssize_t n;
		int r;

		if (end) {
			*ret_length = (size_t)(end - client->buffer);
			return 0;
		}
		searched = client->used;
		if (client->used == client->size) {
			r = grow(client, err);
			if (r < 0)
				return r;
		}
		r = wait_for(client, POLLIN, deadline_ns, err);
		if (r < 0)
			return r;
		n = receive(client);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return gone(client, err);
		if (n > 0)
			client->used += (size_t)n;
	}
}

static int read_refusal(json_t *reply, struct error *err)
{
	const char *text = json_string_value(json_object_get(reply, "error"));
	json_int_t code = json_integer_value(json_object_get(reply, "errno"));

	if (code <= 0 || code > 4095)
		code = EPROTO;
	return error_set(err, (int)code, "%s", text ? text : strerror((int)code));
}

int client_request_text(struct client *client, const char *op, json_t *body, char **ret_text,
			struct error *err)
{
	uint64_t deadline_ns = clock_now_ns() + REPLY_TIMEOUT_NS;
	size_t length = 0;
	char *text;

	close_fds(client);
	int r = send_request(client, op, body, deadline_ns, err);

	if (r < 0)
		return r;
	r = receive_line(client, deadline_ns, &length, err);
	if (r < 0)
		return r;
	text = strndup(client->buffer, length);
	client->used -= length + 1;
	memmove(client->buffer, client->buffer + length + 1, client->used);
	if (!text)
		return error_set(err, ENOMEM, "out of memory");
	*ret_text = text;
	return 0;
}

int client_read_reply(struct client *client, const char *text, json_t **ret_reply, struct error *err)
{
	cleanup_json json_t *reply = json_loads(text, 0, NULL);

	if (!json_is_object(reply))
		return error_set(err, EPROTO,
				 "the program that listens in %s does not speak allot's protocol: "
				 "end it if it is not allotd; otherwise use the same version of "
				 "allot and allotd",
				 client->run_dir);
	if (!json_is_true(json_object_get(reply, "ok")))
		return read_refusal(reply, err);
	if (ret_reply)
		*ret_reply = steal_pointer(&reply);
	return 0;
}

int client_request(struct client *client, const char *op, json_t *body, json_t **ret_reply,
		   struct error *err)
{
	cleanup_free char *text = NULL;
	int r = client_request_text(client, op, body, &text, err);

	return r < 0 ? r : client_read_reply(client, text, ret_reply, err);
}

void client_print_warnings(const char *command, const json_t *reply)
{
	const json_t *warnings = json_object_get(reply, "warnings");
	size_t count = json_array_size(warnings);

	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(warnings, i));

		if (text)
			fprintf(stderr, "allot: %s: warning: %s\n", command, text);
	}
}
