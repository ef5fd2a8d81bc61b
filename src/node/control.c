#include "node/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "node/census.h"
#include "net/listen.h"
#include "node/peer.h"
#include "node/session.h"

#define BACKLOG 128
#define TIMER_NS (250 * NSEC_PER_MSEC)
#define READ_SIZE 4096

struct connection {
	struct connection *next;
	struct control *control;
	int fd;
	struct loop_source *source;
	bool ends; /* close as soon as the output is written */
	char *in;  /* the begun line */
	size_t in_used, in_size;
	char *out; /* the reply being written; NULL: none */
	size_t out_used, out_sent;
	uint64_t out_since_ns;
	struct session session;
};

struct control {
	struct node *node;
	int fd;
	struct loop_source *source;
	struct loop_source *timer;
	struct connection *connections;
	unsigned count;
};

static void connection_free(struct connection *c)
{
	struct connection **link = &c->control->connections;
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	c->control->count--;
	session_drop(&c->session);
	loop_remove(c->source);
	close(c->fd);
	free(c->in);
	free(c->out);
	free(c);
}

static void connection_close(struct connection *c)
{
	session_end(&c->session);
	connection_free(c);
}

/* Some of the reply; the descriptors of the session, if there are any, go with its first byte. */
static ssize_t send_some(struct connection *c)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(c->session.fds))];
	} control = { 0 };
	struct iovec iov = { .iov_base = c->out + c->out_sent,
			     .iov_len = c->out_used - c->out_sent };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t size = c->session.fd_count * sizeof(int);
	if (size) {
		message.msg_control = control.space;
		message.msg_controllen = CMSG_SPACE(size);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(header), c->session.fds, size);
	}
	ssize_t n = sendmsg(c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n > 0 && c->session.fd_count)
		close(c->session.fds[--c->session.fd_count]);
	return n;
}

/* False: the connection is broken. */
static bool flush(struct connection *c)
{
	while (c->out) {
		ssize_t n = send_some(c);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		c->out_sent += (size_t)n;
		c->out_since_ns = clock_now_ns();
		if (c->out_sent == c->out_used) {
			free(c->out);
			c->out = NULL;
		}
	}
	return true;
}

static bool set_reply(struct connection *c, char *reply)
{
	if (!reply)
		return false;
	c->out = reply;
	c->out_used = strlen(reply);
	c->out_sent = 0;
	c->out_since_ns = clock_now_ns();
	return flush(c);
}

/* Answers the complete lines that are here, as far as their replies can be written. */
static bool answer_lines(struct connection *c)
{
	while (!c->out && !c->ends) {
		char *end = c->in_used ? memchr(c->in, '\n', c->in_used) : NULL;
		if (!end)
			break;
		size_t length = (size_t)(end - c->in);
		if (!set_reply(c, session_answer(&c->session, c->in, length)))
			return false;
		c->in_used -= length + 1;
		memmove(c->in, end + 1, c->in_used);
	}
	if (!c->out && !c->ends && c->in_used >= CONTROL_LINE_MAX) {
		c->ends = true;
		return set_reply(c, strdup("{\"ok\":false,\"error\":\"a request may have 65535 "
					   "bytes\",\"errno\":90}\n"));
	}
	return true;
}

/* 1: read something, or nothing is there; 0: the end; negative: broken. */
static int read_some(struct connection *c)
{
	if (c->in_size - c->in_used < READ_SIZE) {
		char *in = realloc(c->in, c->in_size + READ_SIZE);
		if (!in)
			return -ENOMEM;
		c->in = in;
		c->in_size += READ_SIZE;
	}
	ssize_t n = recv(c->fd, c->in + c->in_used, READ_SIZE, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	c->in_used += (size_t)n;
	return n > 0;
}

static void connection_ready(void *data, uint32_t events)
{
	struct connection *c = data;
	bool good = flush(c);
	if (good && !c->out && !c->ends && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		good = read_some(c) > 0;
	good = good && answer_lines(c);
	if (!good || (c->ends && !c->out)) {
		connection_close(c);
		return;
	}
	loop_watch(c->source, c->out ? EPOLLOUT : EPOLLIN);
	if (c->out)
		loop_arm(c->control->timer, TIMER_NS, TIMER_NS);
}

static unsigned count_of_uid(const struct control *control, uid_t uid)
{
	unsigned count = 0;
	for (const struct connection *c = control->connections; c; c = c->next)
		count += c->session.uid == uid;
	return count;
}

int control_serve(struct control *control, int fd, struct error *err)
{
	struct node *node = control->node;
	struct ucred peer;
	int r = peer_credentials(fd, &peer);
	if (r < 0)
		return error_set_errno(err, -r, "who connects");
	if (control->count >= CONTROL_MAX_CONNECTIONS ||
	    (peer.uid != 0 && !node->is_private &&
	     count_of_uid(control, peer.uid) >= CONTROL_MAX_PER_UID))
		return error_set(err, EBUSY, "too many connections");
	struct connection *c = calloc(1, sizeof(*c));
	if (!c)
		return error_set_errno(err, ENOMEM, "connection");
	c->control = control;
	c->fd = fd;
	c->session.node = node;
	c->session.pid = peer.pid;
	c->session.uid = peer.uid;
	c->session.is_admin = peer.uid == 0 || peer_is_in_group(fd, &peer, node->admin_gid);
	r = loop_add(node->loop, fd, EPOLLIN, connection_ready, c, &c->source);
	if (r < 0) {
		free(c);
		return error_set_errno(err, -r, "connection");
	}
	c->next = control->connections;
	control->connections = c;
	control->count++;
	/* Whoever comes will ask what the cards hold. */
	census_request(node->census);
	return 0;
}

static void refuse(int fd, const struct error *err)
{
	char text[ERROR_TEXT_MAX + 64];
	int n = snprintf(text, sizeof(text), "{\"ok\":false,\"error\":\"%s\",\"errno\":%d}\n",
			 err->text, err->code);
	if (send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("control: a refusal can't be sent: %s", strerror(errno));
}

static void listener_ready(void *data, uint32_t events)
{
	struct control *control = data;
	struct error err = { 0 };
	int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* Out of descriptors or memory: the connection stays queued; look again in a while. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			loop_watch(control->source, 0);
			loop_arm(control->timer, TIMER_NS, TIMER_NS);
		}
		return;
	}
	if (control_serve(control, fd, &err) < 0) {
		refuse(fd, &err);
		close(fd);
	}
}

static void timer_due(void *data, uint32_t events)
{
	struct control *control = data;
	struct connection *next;
	uint64_t now_ns = clock_now_ns();
	bool again = false;
	for (struct connection *c = control->connections; c; c = next) {
		next = c->next;
		if (c->out && now_ns - c->out_since_ns >= CONTROL_DEADLINE_NS)
			connection_close(c);
		else
			again |= c->out != NULL;
	}
	loop_watch(control->source, EPOLLIN);
	if (!again)
		loop_disarm(control->timer);
}

static int listen_at(const struct node *node, struct error *err)
{
	char path[NODE_PATH_MAX];
	snprintf(path, sizeof(path), "%s/allotd.sock", node->run_dir);
	cleanup_fd int fd = listen_bind(path, SOCK_STREAM, err);
	if (fd < 0)
		return fd;
	if (chmod(path, node->is_private ? 0600 : 0666) < 0)
		return error_set_errno(err, errno, "chmod %s", path);
	if (listen(fd, BACKLOG) < 0)
		return error_set_errno(err, errno, "listen on %s", path);
	return steal_fd(&fd);
}

int control_open(struct node *node, struct control **ret, struct error *err)
{
	struct control *control = calloc(1, sizeof(*control));
	if (!control)
		return error_set_errno(err, ENOMEM, "control socket");
	control->node = node;
	control->fd = listen_at(node, err);
	if (control->fd < 0) {
		int r = control->fd;
		free(control);
		return r;
	}
	int r = loop_add(node->loop, control->fd, EPOLLIN, listener_ready, control,
			 &control->source);
	if (r >= 0)
		r = loop_add_timer(node->loop, timer_due, control, &control->timer);
	if (r < 0) {
		control_close(control);
		return error_set_errno(err, -r, "watch the control socket");
	}
	*ret = control;
	return 0;
}

struct control *control_close(struct control *control)
{
	char path[NODE_PATH_MAX];
	if (!control)
		return NULL;
	snprintf(path, sizeof(path), "%s/allotd.sock", control->node->run_dir);
	unlink(path);
	while (control->connections)
		connection_free(control->connections);
	loop_remove(control->source);
	loop_remove(control->timer);
	close(control->fd);
	free(control);
	return NULL;
}

unsigned control_connections(const struct control *control)
{
	return control ? control->count : 0;
}
