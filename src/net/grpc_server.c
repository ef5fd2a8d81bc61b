#include "net/grpc_server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/grpc_inside.h"

#define DEAF_NS (250 * NSEC_PER_MSEC)

struct grpc_limits grpc_limits_default(void)
{
	return (struct grpc_limits){ .connections = 32,
				     .calls = 32,
				     .message_bytes = 1 << 20,
				     .held_bytes = 8 << 20,
				     .arrive_ns = 5 * NSEC_PER_SEC,
				     .stall_ns = 10 * NSEC_PER_SEC };
}

void grpc_server_due(struct grpc_server *server, uint64_t at_ns)
{
	uint64_t now_ns = clock_now_ns();
	if (server->is_armed && server->due_ns <= at_ns)
		return;
	server->is_armed = true;
	server->due_ns = at_ns;
	loop_arm(server->due_timer, at_ns > now_ns ? at_ns - now_ns : 0, 0);
}

static void set_deaf(struct grpc_server *server, bool is_deaf)
{
	if (server->is_deaf == is_deaf)
		return;
	server->is_deaf = is_deaf;
	loop_watch(server->listen_source, is_deaf ? 0 : EPOLLIN);
}

static void check_connections(void *data, uint32_t events)
{
	struct grpc_server *server = data;
	struct grpc_connection *c, *next;
	uint64_t now_ns = clock_now_ns();
	server->is_armed = false;
	set_deaf(server, false);
	for (c = TAILQ_FIRST(&server->connections); c; c = next) {
		next = TAILQ_NEXT(c, link);
		grpc_connection_look(c, now_ns);
	}
}

static bool may_connect(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

/* At the limit of connections, closes the one that was idle longest. Returns false if all have calls. */
static bool make_room(struct grpc_server *server)
{
	struct grpc_connection *c, *longest = NULL;
	if (server->connection_count < server->service.limits.connections)
		return true;
	TAILQ_FOREACH(c, &server->connections, link)
		if (TAILQ_EMPTY(&c->calls) && (!longest || c->idle_since_ns < longest->idle_since_ns))
			longest = c;
	if (longest)
		grpc_connection_free(longest);
	return longest;
}

static void accept_connection(void *data, uint32_t events)
{
	struct grpc_server *server = data;
	cleanup_fd int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* Otherwise epoll would call this function again at once. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			set_deaf(server, true);
			grpc_server_due(server, clock_now_ns() + DEAF_NS);
		}
		return;
	}
	if (!may_connect(fd) || !make_room(server)) {
		log_debug(
			"gRPC: connection refused: not from root or this user, or too many connections");
		return;
	}
	int r = grpc_connection_new(server, steal_fd(&fd));
	if (r < 0)
		log_debug("gRPC: connection: error %d", -r);
}

int grpc_server_new(struct loop *loop, int listen_fd, const struct grpc_service *service,
		    struct grpc_server **ret, struct error *err)
{
	struct grpc_server *server = calloc(1, sizeof(*server));
	if (!server)
		return error_set_errno(err, ENOMEM, "gRPC server");
	*server = (struct grpc_server){ .loop = loop, .listen_fd = -1, .service = *service };
	TAILQ_INIT(&server->connections);
	int r = loop_add_timer(loop, check_connections, server, &server->due_timer);
	if (r >= 0)
		r = loop_add(loop, listen_fd, EPOLLIN, accept_connection, server,
			     &server->listen_source);
	if (r < 0) {
		grpc_server_free(server);
		return error_set_errno(err, -r, "gRPC server");
	}
	server->listen_fd = listen_fd;
	*ret = server;
	return 0;
}

struct grpc_server *grpc_server_free(struct grpc_server *server)
{
	struct grpc_connection *c;
	if (!server)
		return NULL;
	loop_remove(server->listen_source);
	while ((c = TAILQ_FIRST(&server->connections)))
		grpc_connection_free(c);
	loop_remove(server->due_timer);
	close_fd(&server->listen_fd);
	free(server);
	return NULL;
}

unsigned grpc_server_connections(const struct grpc_server *server)
{
	return server->connection_count;
}
