#include "sim/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

/* A server with linger_ns ends if no client comes within this time after its start. */
#define FIRST_CLIENT_NS 30000000000ull
#define CLOCK_OFF_NS 1000000000ull /* a client whose clock differs by more is clock_off */

static int watch(struct server *s, int fd, uint32_t events, void *what)
{
	struct epoll_event ev = { .events = events, .data.ptr = what };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Removes the socket file of a dead server. -EADDRINUSE if a server answers there. */
static int clear_path(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		r = -EADDRINUSE;
	else if (errno == ECONNREFUSED)
		r = unlink(address->sun_path) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* Makes the file that stands for the driver's device node (SIM_NODE_SUFFIX in wire.h). */
static int make_node(const char *socket_path)
{
	char path[SIM_NODE_MAX];

	snprintf(path, sizeof(path), "%s" SIM_NODE_SUFFIX, socket_path);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int server_open(struct server *s, const char *path, char *error, size_t error_size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(error, error_size,
			 "--socket %s: a socket's path can have at most %zu bytes: choose a shorter one",
			 path, sizeof(address.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(address.sun_path, path);
	int r = clear_path(&address);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r == 0 && (s->epoll_fd < 0 || s->timer_fd < 0 || s->listen_fd < 0))
		r = -errno;
	if (r == 0 && (bind(s->listen_fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		       listen(s->listen_fd, 128) < 0))
		r = -errno;
	if (r == 0)
		r = make_node(path);
	if (r == 0)
		r = watch(s, s->listen_fd, EPOLLIN, &s->listen_fd);
	if (r == 0)
		r = watch(s, s->timer_fd, EPOLLIN, &s->timer_fd);
	if (r < 0) {
		snprintf(error, error_size, "%s: %s", path,
			 r == -EADDRINUSE
				 ? "another allot-sim already listens there: choose another --socket, or end that process"
				 : strerror(-r));
		return r;
	}
	engine_init(&s->engine, sim_clock_ns(),
		    (struct engine_hooks){ work_op_notice, work_event_done, s });
	for (uint32_t i = 0; i < s->spec.cards_n; i++)
		engine_add_card(&s->engine, s->spec.cards[i].slice_ns, s->spec.cards[i].gap_ns,
				s->spec.cards[i].switch_ns);
	return 0;
}

static void client_flush(struct server *s, struct client *c)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };

	while (c->out_at < c->out_end && !c->gone) {
		ssize_t n = send(c->fd, c->out + c->out_at, c->out_end - c->out_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			c->gone = true;
		else
			c->out_at += (size_t)n;
	}
	if (c->out_at == c->out_end)
		c->out_at = c->out_end = 0;
	else
		ev.events |= EPOLLOUT;
	epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev);
}

static void client_write(struct server *s, struct client *c, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	if (c->gone)
		return;
	if (c->out_at == c->out_end) {
		ssize_t sent = send(c->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno != EAGAIN && errno != EINTR) {
			c->gone = true;
			return;
		}
		if (sent > 0)
			at += sent, n -= (size_t)sent;
		if (!n)
			return;
	}
	if (c->out_end + n > c->out_size) {
		size_t size = (c->out_end + n) * 2;
		unsigned char *out = realloc(c->out, size);

		if (!out) {
			/* The reply is lost, and its client would wait forever, so end the connection. */
			c->gone = true;
			return;
		}
		c->out = out;
		c->out_size = size;
	}
	memcpy(c->out + c->out_end, at, n);
	c->out_end += n;
}

void server_reply(struct server *s, struct client *c, uint32_t req, int status,
		  const uint64_t val[5], const void *payload, size_t payload_bytes)
{
	struct sim_reply_msg reply = { .req = req, .status = status };

	if (!req)
		return;
	reply.payload_bytes = (uint32_t)payload_bytes;
	reply.completed = work_completed(c);
	if (val)
		memcpy(reply.val, val, sizeof(reply.val));
	client_write(s, c, &reply, sizeof(reply));
	if (payload_bytes)
		client_write(s, c, payload, payload_bytes);
}

void server_note(struct server *s, struct client *c, uint32_t type, uint64_t a, uint64_t b)
{
	struct sim_reply_msg note = { .type = type, .val = { a, b } };

	note.completed = work_completed(c);
	client_write(s, c, &note, sizeof(note));
}

int server_take_fd(struct client *c)
{
	if (!c->fds_n)
		return -1;
	int fd = c->fds[0];
	memmove(c->fds, c->fds + 1, --c->fds_n * sizeof(*c->fds));
	return fd;
}

static void client_accept(struct server *s)
{
	for (;;) {
		struct client *c;
		struct ucred cred;
		socklen_t size = sizeof(cred);
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		c = calloc(1, sizeof(*c));
		if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 ||
		    watch(s, fd, EPOLLIN, c) < 0) {
			free(c);
			close(fd);
			continue;
		}
		c->fd = fd;
		c->pid = cred.pid;
		c->uid = cred.uid;
		c->next = s->clients;
		s->clients = c;
	}
}

static void client_read(struct client *c)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * 16)];
	} control;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	if (c->in_at) {
		memmove(c->in, c->in + c->in_at, c->in_end - c->in_at);
		c->in_end -= c->in_at;
		c->in_at = 0;
	}
	/* If the buffer is full, requests stay in the socket. Only check whether the client has hung up. */
	if (c->in_end == sizeof(c->in)) {
		struct pollfd p = { .fd = c->fd };

		c->gone = poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
		return;
	}
	iov.iov_base = c->in + c->in_end;
	iov.iov_len = sizeof(c->in) - c->in_end;
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	ssize_t n = recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		c->gone = true;
		return;
	}
	c->in_end += (size_t)n;
	for (cm = CMSG_FIRSTHDR(&msg); cm; cm = CMSG_NXTHDR(&msg, cm)) {
		size_t fds = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < fds; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int), sizeof(fd));
			if (c->fds_n < 16)
				c->fds[c->fds_n++] = fd;
			else
				close(fd);
		}
	}
}

static struct sim_gate *receive_gate(struct client *c)
{
	struct sim_gate *gate = MAP_FAILED;
	int fd = server_take_fd(c);

	if (fd < 0)
		return NULL;
	gate = mmap(NULL, sizeof(*gate), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return gate == MAP_FAILED ? NULL : gate;
}

static void handle_hello(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	uint64_t now = sim_clock_ns();
	uint64_t apart = m->arg[2] > now ? m->arg[2] - now : now - m->arg[2];

	if (m->arg[0] != SIM_WIRE_MAGIC || m->arg[1] < SIM_KIND_CUDA || m->arg[1] > SIM_KIND_CTL) {
		c->gone = true;
		return;
	}
	c->kind = (enum sim_client_kind)m->arg[1];
	c->group = m->arg[3];
	if (!c->gate)
		c->gate = receive_gate(c);
	c->clock_off = apart > CLOCK_OFF_NS;
	if (c->kind != SIM_KIND_CTL)
		s->had_client = true;
	server_reply(s, c, m->req, SIM_OK, (uint64_t[5]){ s->spec.cards_n, c->clock_off }, NULL, 0);
}

static void handle(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	if (m->type == SIM_HELLO)
		handle_hello(s, c, m);
	else if (!c->kind)
		c->gone = true;
	else if (m->card >= s->spec.cards_n)
		server_reply(s, c, m->req, SIM_BAD_DEVICE, NULL, NULL, 0);
	else if (!work_handle(s, c, m) && !blocks_handle(s, c, m) && !observe_handle(s, c, m) &&
		 !checkpoint_handle(s, c, m))
		server_reply(s, c, m->req, SIM_INVALID, NULL, NULL, 0);
}

/* Handles the requests of all clients in the order in which they were sent, so that work counts from its submission. */
static void handle_all(struct server *s, uint64_t now_ns)
{
	for (;;) {
		struct client *first = NULL;
		struct sim_request_msg m, best;

		for (struct client *c = s->clients; c; c = c->next) {
			if (c->gone || c->in_end - c->in_at < sizeof(m))
				continue;
			memcpy(&m, c->in + c->in_at, sizeof(m));
			if (checkpoint_blocks(c, m.type))
				continue;
			if (c->clock_off || m.stamp_ns > now_ns)
				m.stamp_ns = now_ns;
			if (!first || m.stamp_ns < best.stamp_ns)
				first = c, best = m;
		}
		if (!first)
			return;
		first->in_at += sizeof(m);
		engine_advance(&s->engine, best.stamp_ns);
		handle(s, first, &best);
	}
}

static void client_free(struct server *s, struct client *c)
{
	checkpoint_client_gone(s, c);
	work_client_gone(s, c);
	blocks_client_gone(s, c);
	while (c->fds_n)
		close(server_take_fd(c));
	close(c->fd);
	free(c->out);
	free(c);
}

static void free_gone_clients(struct server *s)
{
	struct client **at = &s->clients;

	while (*at) {
		struct client *c = *at;

		if (c->gone) {
			*at = c->next;
			client_free(s, c);
		} else {
			at = &c->next;
		}
	}
}

static bool has_clients(const struct server *s)
{
	for (const struct client *c = s->clients; c; c = c->next)
		if (c->kind != SIM_KIND_CTL)
			return true;
	return false;
}

static void arm(struct server *s)
{
	uint64_t due = work_next_due(s), lock_due = checkpoint_next_due(s);
	struct itimerspec when = { 0 };

	due = lock_due < due ? lock_due : due;
	if (due != ENGINE_NEVER) {
		when.it_value.tv_sec = (time_t)(due / 1000000000);
		when.it_value.tv_nsec = (long)(due % 1000000000);
	}
	timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static volatile sig_atomic_t is_ending;

static void end(int signal)
{
	is_ending = 1;
}

/* SIGTERM and SIGINT end server_run(). They are blocked except while it waits, so that none is missed just before the wait. */
static void heed_signals(struct server *s)
{
	const struct sigaction action = { .sa_handler = end };
	sigset_t blocked;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, &s->wait_mask);
	sigdelset(&s->wait_mask, SIGTERM);
	sigdelset(&s->wait_mask, SIGINT);
}

int server_run(struct server *s)
{
	struct epoll_event events[64];

	heed_signals(s);
	s->empty_since_ns = sim_clock_ns();
	for (;;) {
		uint64_t now;
		int n, wait_ms = -1;

		if (has_clients(s)) {
			s->empty_since_ns = 0;
		} else if (s->linger_ns) {
			uint64_t limit = s->had_client ? s->linger_ns : FIRST_CLIENT_NS;

			now = sim_clock_ns();
			if (!s->empty_since_ns)
				s->empty_since_ns = now;
			if (now - s->empty_since_ns >= limit && !s->clients)
				return 0;
			wait_ms = now - s->empty_since_ns >= limit
					  ? 100
					  : (int)((limit - (now - s->empty_since_ns)) / 1000000) + 1;
		}
		arm(s);
		n = epoll_pwait(s->epoll_fd, events, 64, wait_ms, &s->wait_mask);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (is_ending)
			return 0;
		for (int i = 0; i < n; i++) {
			void *what = events[i].data.ptr;
			struct client *c;
			struct export *x;

			if (what == &s->listen_fd) {
				client_accept(s);
				continue;
			}
			if (what == &s->timer_fd) {
				uint64_t count;

				if (read(s->timer_fd, &count, sizeof(count)) < 0)
					continue;
				continue;
			}
			for (x = s->exports; x && x != what; x = x->next)
				;
			if (x) {
				blocks_export_closed(s, x);
				continue;
			}
			for (c = s->clients; c && c != what; c = c->next)
				;
			if (!c)
				continue;
			if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
				client_read(c);
			if (events[i].events & EPOLLOUT)
				client_flush(s, c);
		}
		now = sim_clock_ns();
		handle_all(s, now);
		engine_advance(&s->engine, now);
		work_check_room(s);
		checkpoint_poll(s, now);
		for (struct client *c = s->clients; c; c = c->next)
			if (c->out_at < c->out_end)
				client_flush(s, c);
		free_gone_clients(s);
	}
}

void server_close(struct server *s)
{
	for (struct client *c = s->clients; c; c = c->next)
		c->gone = true;
	free_gone_clients(s);
	while (s->exports)
		blocks_export_closed(s, s->exports);
	engine_fini(&s->engine);
	close(s->listen_fd);
	close(s->timer_fd);
	close(s->epoll_fd);
	free(s->holds);
	free(s->holds_free);
}
