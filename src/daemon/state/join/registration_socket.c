#include "daemon/state/join/registration_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/shm/registration.h"
#include "abi/shm/fd_exchange.h"
#include "abi/shm/trace_ring.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/fd/send_fds.h"
#include "daemon/export/trace/tenant_trace.h"
#include "daemon/memory/swap/arena.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/join/join.h"
#include "daemon/state/node/node.h"
#include "daemon/state/fd_exchange_store.h"
#include "daemon/state/tenant.h"
#include "daemon/util/json.h"
#include "net/ancillary.h"
#include "net/closer.h"
#include "net/listen.h"

#define BACKLOG 128
#define RETRY_ACCEPT_NS (100 * NSEC_PER_MSEC)

#define ABOUT_QUESTION_MAX 64

/*
 * Returns true for the question {"version":1,"op":"tenant"} of `allot doctor` in a container. No other message on this socket
 * begins with '{'. Pure.
 */
static bool about_is_question(const char *message, size_t size)
{
	const char *op = NULL;
	int64_t version = 0;
	if (!size || size > ABOUT_QUESTION_MAX || message[0] != '{')
		return false;
	cleanup_json json_t *question = json_loadb(message, size, JSON_REJECT_DUPLICATES, NULL);
	return question && json_read_int(question, "version", 1, 1, &version, NULL) > 0 &&
	       json_read_string(question, "op", &op, NULL) > 0 && !strcmp(op, "tenant");
}

static json_t *device_to_json(struct tenant *tenant, unsigned device)
{
	const struct tenant_device_terms *d = &tenant->terms.device[device];
	return json_pack("{s:s, s:I, s:I, s:f, s:f}", "uuid", d->card->info.uuid_text,
			 "memory_quota_bytes", (json_int_t)d->promise.quota_bytes,
			 "memory_used_bytes", (json_int_t)tenant_usage(tenant, device).used_bytes,
			 "cores_pct", d->promise.cores_pct, "cores_limit_pct", d->promise.limit_pct);
}

/* Makes the answer to `allot doctor` (docs/reference/protocol.md), for the caller to free. Returns NULL if out of memory. */
static char *about_tenant(struct tenant *tenant)
{
	const struct tenant_terms *t = &tenant->terms;
	json_t *devices = json_array();
	for (unsigned i = 0; i < t->device_count; i++)
		json_array_append_new(devices, device_to_json(tenant, i));
	cleanup_json json_t *about = json_pack("{s:b, s:s, s:s, s:s, s:b, s:i, s:s, s:o}", "ok", 1,
					       "daemon", "allotd " ALLOT_VERSION, "name", t->name,
					       "id", t->id, "paused", t->paused, "processes",
					       (int)tenant->process_count, "on_full",
					       on_full_name(t->on_full), "devices", devices);
	return about ? json_dumps(about, JSON_COMPACT) : NULL;
}

/* A connection whose request is not read yet. */
struct exchange {
	struct exchange *next;
	struct registration *registration;
	int fd;
	struct loop_source *source;
	uint64_t deadline_ns;
	struct peer peer;
};

struct registration {
	struct tenant *tenant;
	int fd;
	struct loop_source *source;
	/* for deadlines, and to accept connections again after descriptors ran out */
	struct loop_source *timer;
	struct exchange *pending;
	unsigned pending_count;
};

static void exchange_close(struct exchange *x)
{
	struct exchange **link = &x->registration->pending;
	while (*link != x)
		link = &(*link)->next;
	*link = x->next;
	x->registration->pending_count--;
	loop_remove(x->source);
	closer_close(x->peer.uid, x->fd);
	peer_close(&x->peer);
	free(x);
}

/* Does not block. Returns false on failure, such as a full socket buffer; the client then gets no answer. */
static bool send_reply(int fd, const void *reply, size_t size, const int *fds, unsigned count)
{
	return send_fds(fd, reply, size, fds, count, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void refuse(int fd, const struct error *err)
{
	struct registration_reply reply = { .magic = REGISTRATION_MAGIC,
					    .version = REGISTRATION_VERSION,
					    .status = err->code ? err->code : EIO };
	snprintf(reply.message, sizeof(reply.message), "%.*s", (int)sizeof(reply.message) - 1,
		 err->text);
	send_reply(fd, &reply, sizeof(reply), NULL, 0);
}

static int check_request(const struct registration_request *request, ssize_t size, struct error *err)
{
	if (size != (ssize_t)sizeof(*request) || request->magic != REGISTRATION_MAGIC)
		return error_set(
			err, EPROTO,
			"not a valid registration request: use the same version of liballot.so "
			"and allotd");
	if (request->version != REGISTRATION_VERSION)
		return error_set(
			err, EPROTONOSUPPORT,
			"registration version %u: this daemon speaks %u: use the same version of "
			"liballot.so and allotd",
			request->version, REGISTRATION_VERSION);
	return 0;
}

static void answer(struct exchange *x, const struct registration_request *request, ssize_t size,
		   const struct ucred *sender)
{
	struct tenant *tenant = x->registration->tenant;
	struct error err = { 0 };
	struct process *process;
	bool is_new = false;
	int r = check_request(request, size, &err);
	if (r >= 0)
		r = peer_confirm(&x->peer, sender, &err);
	if (r >= 0)
		r = join_tenant(tenant, &x->peer, request->previous_epoch, &process, &is_new, &err);
	if (r >= 0)
		process->library_version = request->library_version;
	if (r < 0) {
		log_info_of(x->peer.uid, "tenant '%s': process %d refused: %s", tenant->terms.name,
			    x->peer.pid, err.text);
		refuse(x->fd, &err);
		return;
	}
	struct registration_reply reply = { .magic = REGISTRATION_MAGIC,
					    .version = REGISTRATION_VERSION,
					    .slot = process->slot,
					    .epoch = tenant->node->epoch };
	int fds[3] = { tenant->region.control_fd, tenant->region.report_fd,
		       tenant->arena ? arena_fd(tenant->arena) : -1 };
	if (send_reply(x->fd, &reply, sizeof(reply), fds, tenant->arena ? 3 : 2)) {
		log_debug("tenant '%s': process %d has slot %u", tenant->terms.name, process->pid,
			  process->slot);
		return;
	}
	log_debug("tenant '%s': process %d went away during its registration", tenant->terms.name,
		  process->pid);
	if (is_new)
		tenant_remove_process(process);
}

/* If the descriptor is not kept, closer_close() closes it in another thread, because close() may block. */
static int store_fd(struct exchange *x, const struct fd_exchange_request *request, bool has_fds,
		    struct error *err)
{
	int fd = has_fds ? ancillary_take(x->fd, x->peer.uid) : -1;
	int r = fd_store_put(x->registration->tenant->fd_store, x->peer.pid, request->key,
			     request->bytes, &fd, err);
	if (fd >= 0)
		closer_close(x->peer.uid, fd);
	return r;
}

/* For FD_EXCHANGE_GET, sets *ret_fd, which the caller sends with the reply. */
static int exchange_fd(struct exchange *x, const struct fd_exchange_request *request, bool has_fds,
		       struct fd_exchange_reply *reply, int *ret_fd, struct error *err)
{
	struct tenant *tenant = x->registration->tenant;
	struct process *process = tenant_process_of(tenant, x->peer.pid);
	if (!process)
		return error_set(err, EPERM, "sharing: process %d has not registered with allotd",
				 x->peer.pid);
	if (!tenant->fd_store)
		tenant->fd_store = fd_store_new();
	if (!tenant->fd_store)
		return error_set_errno(err, ENOMEM, "sharing");
	switch (request->op) {
	case FD_EXCHANGE_PUT: return store_fd(x, request, has_fds, err);
	case FD_EXCHANGE_GET:
		*ret_fd = fd_store_get(tenant->fd_store, request->key, &reply->bytes);
		return *ret_fd < 0
			       ? error_set(err, ENOENT,
					   "sharing: the GPU memory that the process opens (cuIpcOpenMemHandle) was freed, or is not this tenant's")
			       : 0;
	case FD_EXCHANGE_DELETE:
		fd_store_delete(tenant->fd_store, x->peer.pid, request->key);
		return 0;
	default:
		return error_set(err, EINVAL,
				 "sharing: unknown operation %u: liballot.so and allotd must be "
				 "of the same version",
				 request->op);
	}
}

static void answer_fd_exchange(struct exchange *x, const struct fd_exchange_request *request,
			       const struct ancillary *ancillary)
{
	struct fd_exchange_reply reply = { .magic = FD_EXCHANGE_MAGIC,
					   .version = FD_EXCHANGE_VERSION };
	struct error err = { 0 };
	int give_fd = -1, r = 0;
	if (request->version != FD_EXCHANGE_VERSION)
		r = error_set(&err, EPROTONOSUPPORT,
			      "sharing: unknown version %u: liballot.so and allotd must be of "
			      "the same version",
			      request->version);
	if (r >= 0)
		r = peer_confirm(&x->peer, &ancillary->sender, &err);
	if (r >= 0)
		r = exchange_fd(x, request, ancillary->has_fds, &reply, &give_fd, &err);
	if (r < 0) {
		log_debug("tenant '%s': process %d: %s", x->registration->tenant->terms.name,
			  x->peer.pid, err.text);
		reply.status = -r;
	}
	send_reply(x->fd, &reply, sizeof(reply), &give_fd, r >= 0 && give_fd >= 0);
}

static void answer_question(struct exchange *x)
{
	cleanup_free char *text = about_tenant(x->registration->tenant);
	if (text)
		send_reply(x->fd, text, strlen(text), NULL, 0);
}

static void answer_trace(struct exchange *x, const struct trace_request *request,
			 const struct ucred *sender)
{
	struct tenant *tenant = x->registration->tenant;
	struct trace_reply reply = { .magic = TRACE_MAGIC, .version = TRACE_VERSION };
	struct process *process = NULL;
	struct error err = { 0 };
	int r = 0, ring_fd = -1;
	if (request->version != TRACE_VERSION)
		r = error_set(&err, EPROTONOSUPPORT,
			      "trace: unknown version %u: liballot.so and allotd must be of the "
			      "same version",
			      request->version);
	if (r >= 0)
		r = peer_confirm(&x->peer, sender, &err);
	if (r >= 0)
		process = tenant_process_of(tenant, x->peer.pid);
	if (r >= 0 && !process)
		r = error_set(&err, EPERM, "trace: process %d has not registered with allotd",
			      x->peer.pid);
	if (r >= 0)
		r = ring_fd = tenant_trace_join(tenant, process, request->order, &err);
	if (r < 0) {
		log_debug("tenant '%s': process %d: %s", tenant->terms.name, x->peer.pid, err.text);
		reply.status = -r;
	}
	send_reply(x->fd, &reply, sizeof(reply), &ring_fd, r >= 0);
}

static void exchange_ready(void *data, uint32_t events)
{
	struct exchange *x = data;
	union {
		struct registration_request registration;
		struct fd_exchange_request fd_exchange;
		char question[ABOUT_QUESTION_MAX];
		struct trace_request trace;
	} request = { 0 };
	struct ancillary ancillary;

	/* MPS is still starting: stop watching this socket until timer_due() watches it again. */
	if (space_is_starting(x->registration->tenant) && !(events & (EPOLLHUP | EPOLLERR))) {
		loop_watch(x->source, 0);
		return;
	}
	/* Do not receive the message: exchange_close() drops it in another thread, since closing its descriptors may block. */
	ssize_t size = ancillary_peek(x->fd, x->peer.uid, &request, sizeof(request), true,
				      &ancillary);
	if (size == -EAGAIN || size == -EINTR)
		return;
	const struct ucred *sender = &ancillary.sender;
	if (size == (ssize_t)sizeof(request.fd_exchange) &&
	    request.fd_exchange.magic == FD_EXCHANGE_MAGIC)
		answer_fd_exchange(x, &request.fd_exchange, &ancillary);
	else if (size > 0 && about_is_question(request.question, (size_t)size))
		answer_question(x);
	else if (size == (ssize_t)sizeof(request.trace) && request.trace.magic == TRACE_MAGIC)
		answer_trace(x, &request.trace, sender);
	else if (size > 0)
		answer(x, &request.registration, size, sender);
	exchange_close(x);
}

static void arm_timer(struct registration *registration)
{
	loop_arm(registration->timer, RETRY_ACCEPT_NS, RETRY_ACCEPT_NS);
}

/* Takes ownership of `fd` only on success. */
static int exchange_begin(struct registration *registration, int fd, uid_t uid, struct error *err)
{
	if (closer_is_stuck(uid))
		return error_set(
			err, EBUSY,
			"connection refused: close() hangs on file descriptors that uid %u sent: end "
			"the programs that sent them",
			(unsigned)uid);
	if (registration->pending_count >= REGISTRATION_MAX_PENDING)
		return error_set(err, EBUSY,
				 "%d processes of this tenant are registering at this moment, the most "
				 "allowed: try again",
				 REGISTRATION_MAX_PENDING);
	struct exchange *x = calloc(1, sizeof(*x));
	if (!x)
		return error_set_errno(err, ENOMEM, "registration");
	*x = (struct exchange){ .registration = registration,
				.fd = fd,
				.deadline_ns = clock_now_ns() + REGISTRATION_DEADLINE_NS };
	int r = peer_open(fd, &x->peer, err);
	if (r >= 0) {
		r = loop_add(registration->tenant->node->loop, fd, EPOLLIN, exchange_ready, x,
			     &x->source);
		if (r < 0) {
			error_set_errno(err, -r, "registration");
			peer_close(&x->peer);
		}
	}
	if (r < 0) {
		free(x);
		return r;
	}
	x->next = registration->pending;
	registration->pending = x;
	registration->pending_count++;
	arm_timer(registration);
	return 0;
}

static void listener_ready(void *data, uint32_t events)
{
	struct registration *registration = data;
	struct error err = { 0 };
	int fd = accept4(registration->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* Out of descriptors or memory: the connection stays queued in the kernel, and the timer tries again. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			loop_watch(registration->source, 0);
			arm_timer(registration);
		}
		return;
	}
	struct ucred peer = { .uid = (uid_t)-1 };
	peer_credentials(fd, &peer);
	if (exchange_begin(registration, fd, peer.uid, &err) < 0) {
		refuse(fd, &err);
		closer_close(peer.uid, fd);
	}
}

static void timer_due(void *data, uint32_t events)
{
	struct registration *registration = data;
	uint64_t now_ns = clock_now_ns();
	struct exchange *next;
	for (struct exchange *x = registration->pending; x; x = next) {
		next = x->next;
		if (space_is_starting(registration->tenant))
			x->deadline_ns = now_ns + REGISTRATION_DEADLINE_NS;
		if (now_ns >= x->deadline_ns)
			exchange_close(x);
		else
			loop_watch(x->source, EPOLLIN);
	}
	loop_watch(registration->source, EPOLLIN);
	if (!registration->pending)
		loop_disarm(registration->timer);
}

static int listen_at(struct tenant *tenant, struct error *err)
{
	char path[NODE_PATH_MAX];
	int on = 1;

	tenant_path(tenant, "allot.sock", path);
	cleanup_fd int fd = listen_bind(path, SOCK_SEQPACKET, err);
	if (fd < 0)
		return fd;
	/* Any user may open a claim's socket, whose directory restricts access: tenant_path(). */
	if (chmod(path, *tenant->terms.claim.key ? 0666 : 0600) < 0 ||
	    (tenant->terms.uid != geteuid() && lchown(path, tenant->terms.uid, (gid_t)-1) < 0))
		return error_set_errno(err, errno, "give %s to uid %u", path,
				       (unsigned)tenant->terms.uid);
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 || listen(fd, BACKLOG) < 0)
		return error_set_errno(err, errno, "listen on %s", path);
	return steal_fd(&fd);
}

int registration_open(struct tenant *tenant, struct registration **ret, struct error *err)
{
	struct registration *registration = calloc(1, sizeof(*registration));
	if (!registration)
		return error_set_errno(err, ENOMEM, "registration");
	registration->tenant = tenant;
	registration->fd = listen_at(tenant, err);
	if (registration->fd < 0) {
		int r = registration->fd;
		free(registration);
		return r;
	}
	struct loop *loop = tenant->node->loop;
	int r = loop_add(loop, registration->fd, EPOLLIN, listener_ready, registration,
			 &registration->source);
	if (r >= 0)
		r = loop_add_timer(loop, timer_due, registration, &registration->timer);
	if (r < 0) {
		registration_close(registration);
		return error_set_errno(err, -r, "can't watch the tenant's registration socket");
	}
	*ret = registration;
	return 0;
}

struct registration *registration_close(struct registration *registration)
{
	if (!registration)
		return NULL;
	while (registration->pending)
		exchange_close(registration->pending);
	loop_remove(registration->source);
	loop_remove(registration->timer);
	close(registration->fd);
	free(registration);
	return NULL;
}
