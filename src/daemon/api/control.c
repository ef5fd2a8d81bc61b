#include "daemon/api/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/fd/send_fds.h"
#include "daemon/gpu/census.h"
#include "daemon/api/dispatch.h"
#include "daemon/api/session.h"
#include "daemon/util/peer.h"
#include "net/ancillary.h"
#include "net/closer.h"
#include "net/listen.h"

#define BACKLOG 4096 /* limited by the kernel's somaxconn */
#define ACCEPT_BATCH 64
/* longest time for requests at a stretch; then the loop handles other events */
#define TURN_NS NSEC_PER_MSEC
#define TIMER_NS (250 * NSEC_PER_MSEC)
#define READ_SIZE 4096

struct user {
	struct user *next;
	uid_t uid;
	unsigned count;
	TAILQ_HEAD(, connection) ready;
	TAILQ_ENTRY(user) link; /* in control.ready while the user's `ready` is not empty */
};

struct connection {
	struct connection *next;
	/* in user.ready while an event or a request waits to be served (set_ready()) */
	TAILQ_ENTRY(connection) link;
	struct control *control;
	struct user *user;
	struct peer peer;
	bool has_sender; /* SO_PASSCRED is on: each message's sender is compared with the peer */
	bool is_ready;
	uint64_t active_ns; /* time of the last request, or of the connection's start */
	int fd;
	struct loop_source *source;
	bool ends; /* the connection is closed once `out` is sent */
	char *in;  /* bytes read and not answered yet */
	size_t in_used, in_size;
	char *out; /* the reply being written; NULL if none */
	size_t out_used, out_sent;
	uint64_t out_since_ns;
	struct session session;
};

_Static_assert(SESSION_MAX_FDS <= SEND_FDS_MAX, "a reply can carry all descriptors");

struct control {
	struct node *node;
	int fd;
	struct loop_source *source;
	struct loop_source *timer;
	struct loop_source *turn; /* armed while `ready` is not empty */
	struct connection *connections;
	struct user *users;
	TAILQ_HEAD(, user) ready;
	unsigned count;
};

static struct user *user_of(struct control *control, uid_t uid)
{
	struct user *u = control->users;
	while (u && u->uid != uid)
		u = u->next;
	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	TAILQ_INIT(&u->ready);
	u->next = control->users;
	control->users = u;
	return u;
}

static void user_free_if_unused(struct control *control, struct user *u)
{
	struct user **link = &control->users;
	if (u->count)
		return;
	while (*link != u)
		link = &(*link)->next;
	*link = u->next;
	free(u);
}

static void set_ready(struct connection *c)
{
	struct user *u = c->user;
	if (TAILQ_EMPTY(&u->ready))
		TAILQ_INSERT_TAIL(&c->control->ready, u, link);
	TAILQ_INSERT_TAIL(&u->ready, c, link);
	c->is_ready = true;
	c->session.came_ns = clock_now_ns();
	loop_arm(c->control->turn, 0, 0);
}

static void set_unready(struct connection *c)
{
	struct user *u = c->user;
	if (!c->is_ready)
		return;
	TAILQ_REMOVE(&u->ready, c, link);
	if (TAILQ_EMPTY(&u->ready))
		TAILQ_REMOVE(&c->control->ready, u, link);
	c->is_ready = false;
}

static void connection_free(struct connection *c)
{
	struct connection **link = &c->control->connections;
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	c->control->count--;
	c->user->count--;
	set_unready(c);
	user_free_if_unused(c->control, c->user);
	session_drop(&c->session);
	loop_remove(c->source);
	peer_close(&c->peer);
	closer_close(c->session.uid, c->fd);
	free(c->in);
	free(c->out);
	free(c);
}

static void connection_close(struct connection *c)
{
	session_end(&c->session);
	connection_free(c);
}

/* Sends a part of the reply, with the session's descriptors if it is the first part. */
static ssize_t send_some(struct connection *c)
{
	ssize_t n = send_fds(c->fd, c->out + c->out_sent, c->out_used - c->out_sent, c->session.fds,
			     c->session.fd_count, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n > 0 && c->session.fd_count)
		close(c->session.fds[--c->session.fd_count]);
	return n;
}

/* Returns false if the connection is broken. */
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

static bool has_line(const struct connection *c)
{
	return c->in_used && memchr(c->in, '\n', c->in_used);
}

/* Returns false if the connection is broken or memory is out. */
static bool answer_line(struct connection *c)
{
	const char *end = c->in_used ? memchr(c->in, '\n', c->in_used) : NULL;
	if (end) {
		size_t length = (size_t)(end - c->in);
		c->active_ns = clock_now_ns();
		if (!set_reply(c, dispatch_request(&c->session, c->in, length)))
			return false;
		c->in_used -= length + 1;
		memmove(c->in, end + 1, c->in_used);
	} else if (c->in_used >= CONTROL_LINE_MAX) {
		c->ends = true;
		return set_reply(
			c,
			strdup("{\"ok\":false,\"error\":\"the request is too long: must be at most 65535 "
			       "bytes\",\"errno\":90}\n"));
	}
	return true;
}

/*
 * Returns 1 after reading or if there is nothing to read, 0 at the end of the stream. Returns -errno if the connection must be
 * closed: it is broken, memory is out, or the client sent descriptors.
 */
static int read_some(struct connection *c)
{
	if (c->in_size - c->in_used < READ_SIZE) {
		char *in = realloc(c->in, c->in_size + READ_SIZE);
		if (!in)
			return -ENOMEM;
		c->in = in;
		c->in_size += READ_SIZE;
	}
	struct ancillary ancillary;
	ssize_t n = ancillary_peek(c->fd, c->peer.uid, c->in + c->in_used, READ_SIZE, c->has_sender,
				   &ancillary);
	if (n < 0)
		return n == -EAGAIN || n == -EINTR ? 1 : (int)n;
	if (ancillary.has_fds)
		return -EPROTO; /* clients never need to send descriptors */
	struct error ignored;   /* after an error c->peer.confirmed stays false */
	if (n > 0 && c->has_sender)
		peer_confirm(&c->peer, &ancillary.sender, &ignored);
	n = recv(c->fd, c->in + c->in_used, (size_t)n, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	c->in_used += (size_t)n;
	return n > 0;
}

static void serve(struct connection *c)
{
	bool good = flush(c);
	if (good && !c->out && !c->ends && !has_line(c))
		good = read_some(c) > 0;
	if (good && !c->out && !c->ends)
		good = answer_line(c);
	if (!good || (c->ends && !c->out)) {
		connection_close(c);
		return;
	}
	if (!c->out && has_line(c)) {
		set_ready(c);
		return;
	}
	loop_watch(c->source, (c->out ? EPOLLOUT : EPOLLIN) | EPOLLONESHOT);
	if (c->out)
		loop_arm(c->control->timer, TIMER_NS, TIMER_NS);
}

static void connection_ready(void *data, uint32_t events)
{
	set_ready(data);
}

static void turn_due(void *data, uint32_t events)
{
	struct control *control = data;
	uint64_t end_ns = clock_now_ns() + TURN_NS;
	struct user *u;
	do {
		u = TAILQ_FIRST(&control->ready);
		if (!u)
			return;
		struct connection *c = TAILQ_FIRST(&u->ready);
		set_unready(c);
		if (!TAILQ_EMPTY(&u->ready)) {
			TAILQ_REMOVE(&control->ready, u, link);
			TAILQ_INSERT_TAIL(&control->ready, u, link);
		}
		serve(c);
	} while (clock_now_ns() < end_ns);
	loop_arm(control->turn, 0, 0);
}

static bool is_idle(const struct connection *c)
{
	return !c->out && !c->is_ready;
}

/* Returns true if `a` should be closed before `b` to make room. */
static bool goes_before(const struct connection *a, const struct connection *b)
{
	if (a->user->count != b->user->count)
		return a->user->count > b->user->count;
	if (is_idle(a) != is_idle(b))
		return is_idle(a);
	return a->active_ns < b->active_ns;
}

/*
 * Makes room for a new connection, whose user already has count_of_comer connections. Closes a connection of the user (not
 * root) with the most connections; that user must keep more than count_of_comer. Never closes a connection that holds a tenant
 * or a trace. Returns false if no connection may be closed.
 */
static bool make_room(struct control *control, unsigned count_of_comer)
{
	struct connection *first = NULL;
	for (struct connection *c = control->connections; c; c = c->next)
		if (c->user->uid != 0 && c->user->count > count_of_comer + 1 &&
		    !c->session.held_count && !c->session.trace && (!first || goes_before(c, first)))
			first = c;
	if (first)
		connection_close(first);
	return first;
}

static unsigned count_of_others(const struct control *control)
{
	unsigned count = control->count;
	for (const struct user *u = control->users; u; u = u->next)
		if (u->uid == 0)
			count -= u->count;
	return count;
}

static int check_room(struct control *control, uid_t uid, struct error *err)
{
	const struct user *u = control->users;
	while (u && u->uid != uid)
		u = u->next;
	unsigned count = u ? u->count : 0;
	bool is_bounded = uid != 0 && !control->node->is_private;
	if (closer_is_stuck(uid))
		return error_set(
			err, EBUSY,
			"connection refused: close() hangs on file descriptors that uid %u sent: end "
			"the programs that sent them",
			(unsigned)uid);
	if (is_bounded && count >= CONTROL_MAX_PER_UID)
		return error_set(
			err, EBUSY,
			"too many connections: uid %u already has %u: end some of its programs",
			(unsigned)uid, count);
	bool is_over = control->count >= CONTROL_MAX_CONNECTIONS + CONTROL_MAX_ASSURED;
	bool is_full = is_over || (control->node->is_private
					   ? control->count >= CONTROL_MAX_CONNECTIONS
					   : uid != 0 && count_of_others(control) >=
								 CONTROL_MAX_CONNECTIONS -
									 CONTROL_KEPT_FOR_ROOT);
	if (is_full && !make_room(control, count) && (is_over || count >= CONTROL_ASSURED))
		return error_set(err, EBUSY, "too many connections to the daemon: try again later");
	return 0;
}

int control_serve(struct control *control, int fd, struct error *err)
{
	struct node *node = control->node;
	struct ucred peer;
	int r = peer_credentials(fd, &peer);
	if (r < 0)
		return error_set_errno(err, -r,
				       "can't read the credentials of the process that connects");
	r = check_room(control, peer.uid, err);
	if (r < 0)
		return r;
	struct user *user = user_of(control, peer.uid);
	struct connection *c = calloc(1, sizeof(*c));
	if (user && c)
		r = loop_add(node->loop, fd, EPOLLIN | EPOLLONESHOT, connection_ready, c,
			     &c->source);
	if (!user || !c || r < 0) {
		if (user)
			user_free_if_unused(control, user);
		free(c);
		return error_set_errno(err, r < 0 ? -r : ENOMEM, "connection");
	}
	c->control = control;
	c->fd = fd;
	c->user = user;
	c->active_ns = clock_now_ns();
	/* After an error the connection stays, but requests that need to know the client's process are refused. */
	struct error ignored;
	if (peer_open(fd, &c->peer, &ignored) < 0)
		c->peer = (struct peer){ .pid = peer.pid, .uid = peer.uid, .pidfd = -1 };
	c->has_sender = c->peer.pidfd >= 0 && !c->peer.confirmed;
	c->session.node = node;
	c->session.peer = &c->peer;
	c->session.pid = peer.pid;
	c->session.uid = peer.uid;
	c->session.is_admin = peer.uid == 0 || peer_is_in_group(fd, &peer, node->admin_gid);
	c->next = control->connections;
	control->connections = c;
	control->count++;
	user->count++;
	/* A new client will probably ask for the cards' memory use, so have it measured now. */
	census_request(node->census);
	return 0;
}

static void refuse(int fd, const struct error *err)
{
	char text[ERROR_TEXT_MAX + 64];
	int n = snprintf(text, sizeof(text), "{\"ok\":false,\"error\":\"%s\",\"errno\":%d}\n",
			 err->text, err->code);
	if (send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("control: can't tell a client that its connection is refused: %s",
			  strerror(errno));
}

static void refuse_and_close(int fd, const struct error *err)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	peer_credentials(fd, &peer);
	refuse(fd, err);
	closer_close(peer.uid, fd);
}

static void listener_ready(void *data, uint32_t events)
{
	struct control *control = data;
	for (unsigned i = 0; i < ACCEPT_BATCH; i++) {
		struct error err = { 0 };
		int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			if (control_serve(control, fd, &err) < 0)
				refuse_and_close(fd, &err);
			continue;
		}
		/* Out of descriptors or memory: accept nothing until the timer fires. The kernel queues new connections. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			loop_watch(control->source, 0);
			loop_arm(control->timer, TIMER_NS, TIMER_NS);
		}
		return;
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
	TAILQ_INIT(&control->ready);
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
	if (r >= 0)
		r = loop_add_timer(node->loop, turn_due, control, &control->turn);
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
	free(control->node->list_text);
	control->node->list_text = NULL;
	while (control->connections)
		connection_free(control->connections);
	loop_remove(control->source);
	loop_remove(control->timer);
	loop_remove(control->turn);
	close(control->fd);
	free(control);
	return NULL;
}

unsigned control_connections(const struct control *control)
{
	return control ? control->count : 0;
}
