#include "sim/client/server_link.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd/send_fds.h"
#include "base/fd/unix_connect.h"

#define GATE_LOOK_NS 200000000 /* how often a waiting call checks that the server still runs */

struct link_pending {
	struct link_pending *next;
	uint32_t req;
	bool done;
	struct sim_reply_msg reply;
	void *payload;
};

static struct link *the_link;

static void in_fork_child(void)
{
	if (!the_link)
		return;
	atomic_store(&the_link->dead, true);
	/* Close this copy of the socket: while the copy is open, the server would not see the parent exit. */
	if (the_link->fd >= 0)
		close(the_link->fd);
	the_link->fd = -1;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_fork_child);
}

uint64_t link_mps_server(void)
{
	const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
	struct stat st;

	if (!dir || stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return ((uint64_t)st.st_dev << 32 ^ (uint64_t)st.st_ino) | UINT64_C(1) << 63;
}

static int say_hello(struct link *l, enum sim_client_kind kind, uint64_t val[5])
{
	struct sim_request_msg m = { .type = SIM_HELLO,
				     .arg = { SIM_WIRE_MAGIC, kind, sim_clock_ns(),
					      kind == SIM_KIND_CUDA ? link_mps_server() : 0 } };
	int r, fd = kind == SIM_KIND_CUDA ? memfd_create("gate", MFD_CLOEXEC) : -1;
	void *gate = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(struct sim_gate)) == 0)
		gate = mmap(NULL, sizeof(struct sim_gate), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);
	r = gate == MAP_FAILED ? link_call(l, m, val, NULL, NULL) : link_call_fd(l, m, fd, val);
	if (fd >= 0)
		close(fd);
	if (gate != MAP_FAILED)
		l->gate = gate;
	return r;
}

int link_open(struct link *l, const char *path, enum sim_client_kind kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_condattr_t attr;
	uint64_t val[5];
	int r, fd = unix_connect(path, SOCK_STREAM);

	if (fd < 0)
		return fd;
	memset(l, 0, sizeof(*l));
	l->fd = fd;
	pthread_mutex_init(&l->send_lock, NULL);
	pthread_mutex_init(&l->room_lock, NULL);
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attr);
	pthread_condattr_destroy(&attr);
	the_link = l;
	pthread_once(&once, watch_forks);
	r = say_hello(l, kind, val);
	if (r) {
		link_close(l);
		return -ECONNRESET;
	}
	l->cards = (uint32_t)val[0];
	l->clock_off = val[1];
	return 0;
}

void link_close(struct link *l)
{
	if (the_link == l)
		the_link = NULL;
	atomic_store(&l->dead, true);
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	if (l->gate)
		munmap(l->gate, sizeof(*l->gate));
	l->gate = NULL;
	while (l->notes) {
		struct link_note *note = l->notes;

		l->notes = note->next;
		free(note);
	}
	l->notes_tail = NULL;
}

void link_abort(struct link *l)
{
	atomic_store(&l->dead, true);
	if (l->fd >= 0)
		shutdown(l->fd, SHUT_RDWR);
}

/* Sends the whole request, and fd unless it is negative. A failure marks the link dead. Call with send_lock held. */
static int send_all(struct link *l, const struct sim_request_msg *m, int fd)
{
	const unsigned char *at = (const unsigned char *)m;
	size_t left = sizeof(*m);

	while (left) {
		ssize_t n;

		if (atomic_load_explicit(&l->dead, memory_order_relaxed))
			return LINK_DEAD;
		n = send_fds(l->fd, at, left, &fd, fd >= 0, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			atomic_store(&l->dead, true);
			return LINK_DEAD;
		}
		fd = -1;
		at += n;
		left -= (size_t)n;
	}
	return 0;
}

/* Asks the socket itself, because a thread that would notice the server's end may not be reading now. */
static bool is_ended(struct link *l)
{
	struct pollfd p = { .fd = l->fd };

	if (atomic_load_explicit(&l->dead, memory_order_relaxed))
		return true;
	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR | POLLNVAL);
}

/* Waits while the server has locked this process (struct sim_gate). */
static void pass_gate(struct link *l, uint32_t type)
{
	if (!l->gate || sim_passes_gate(type))
		return;
	while (__builtin_expect(atomic_load_explicit(&l->gate->is_shut, memory_order_acquire), 0) &&
	       !is_ended(l))
		syscall(SYS_futex, &l->gate->is_shut, FUTEX_WAIT, 1,
			&(struct timespec){ .tv_nsec = GATE_LOOK_NS }, NULL, 0);
}

static int post(struct link *l, struct sim_request_msg *m, int fd, uint32_t launches)
{
	pass_gate(l, m->type);
	pthread_mutex_lock(&l->send_lock);
	/* Set the time stamp under the lock, so that a client's stamps never go back. */
	m->stamp_ns = sim_clock_ns();
	int r = send_all(l, m, fd);
	if (launches)
		atomic_fetch_add_explicit(&l->launched, launches, memory_order_relaxed);
	pthread_mutex_unlock(&l->send_lock);
	return r;
}

int link_post(struct link *l, struct sim_request_msg m)
{
	if (atomic_load_explicit(&l->dead, memory_order_relaxed))
		return LINK_DEAD;
	m.req = 0;
	return post(l, &m, -1, 0);
}

int link_post_work(struct link *l, struct sim_request_msg m, uint32_t launches)
{
	/* Threads that read `launched` at the same time may exceed the limit by a few, which is harmless. */
	while (atomic_load_explicit(&l->launched, memory_order_relaxed) -
		       atomic_load_explicit(&l->completed, memory_order_relaxed) >=
	       SIM_LAUNCH_QUEUE) {
		int r;

		pthread_mutex_lock(&l->room_lock);
		r = link_call(l, (struct sim_request_msg){ .type = SIM_ROOM }, NULL, NULL, NULL);
		pthread_mutex_unlock(&l->room_lock);
		if (r)
			return r;
	}
	if (atomic_load_explicit(&l->dead, memory_order_relaxed))
		return LINK_DEAD;
	m.req = 0;
	return post(l, &m, -1, launches);
}

/* Gives a reply to the thread that waits for it; queues a note. Call with l->lock held. */
static void dispatch(struct link *l, const struct sim_reply_msg *reply, const void *payload)
{
	if (reply->completed > atomic_load_explicit(&l->completed, memory_order_relaxed))
		atomic_store_explicit(&l->completed, reply->completed, memory_order_relaxed);
	if (!reply->req) {
		struct link_note *note = calloc(1, sizeof(*note));

		if (!note)
			return;
		note->msg = *reply;
		if (l->notes)
			l->notes_tail->next = note;
		else
			l->notes = note;
		l->notes_tail = note;
		return;
	}
	for (struct link_pending *p = l->pending; p; p = p->next)
		if (p->req == reply->req && !p->done) {
			p->reply = *reply;
			if (reply->payload_bytes && (p->payload = malloc(reply->payload_bytes)))
				memcpy(p->payload, payload, reply->payload_bytes);
			p->done = true;
			return;
		}
}

/* Waits up to timeout_ns, and dispatches all complete replies. Call with l->lock held; the lock is released while reading. */
static void read_some(struct link *l, uint64_t timeout_ns)
{
	ssize_t n = -1;
	size_t at = 0;

	l->reading = true;
	pthread_mutex_unlock(&l->lock);
	if (timeout_ns != UINT64_MAX) {
		struct pollfd p = { .fd = l->fd, .events = POLLIN };
		struct timespec ts = { (time_t)(timeout_ns / 1000000000),
				       (long)(timeout_ns % 1000000000) };

		n = ppoll(&p, 1, &ts, NULL);
	}
	if (timeout_ns == UINT64_MAX || n > 0) {
		n = recv(l->fd, l->in + l->in_end, sizeof(l->in) - l->in_end, 0);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			atomic_store(&l->dead, true);
	} else {
		n = 0;
	}
	pthread_mutex_lock(&l->lock);
	if (n > 0)
		l->in_end += (size_t)n;
	while (l->in_end - at >= sizeof(struct sim_reply_msg)) {
		struct sim_reply_msg reply;

		memcpy(&reply, l->in + at, sizeof(reply));
		if (reply.payload_bytes > sizeof(l->in) - sizeof(reply)) {
			/* Read the rest of a large payload here, because this thread is still the only reader. */
			size_t have = l->in_end - at - sizeof(reply);
			unsigned char *whole = malloc(reply.payload_bytes);

			if (!whole) {
				atomic_store(&l->dead, true);
				break;
			}
			memcpy(whole, l->in + at + sizeof(reply), have);
			while (have < reply.payload_bytes) {
				n = recv(l->fd, whole + have, reply.payload_bytes - have, 0);
				if (n <= 0 && !(n < 0 && errno == EINTR)) {
					atomic_store(&l->dead, true);
					break;
				}
				have += n > 0 ? (size_t)n : 0;
			}
			if (have == reply.payload_bytes)
				dispatch(l, &reply, whole);
			free(whole);
			at = l->in_end;
			break;
		}
		if (l->in_end - at < sizeof(reply) + reply.payload_bytes)
			break;
		dispatch(l, &reply, l->in + at + sizeof(reply));
		at += sizeof(reply) + reply.payload_bytes;
	}
	memmove(l->in, l->in + at, l->in_end - at);
	l->in_end -= at;
	l->reading = false;
	pthread_cond_broadcast(&l->changed);
}

static int call(struct link *l, struct sim_request_msg *m, int fd, uint64_t *ret_val,
		void **ret_payload, size_t *ret_payload_bytes)
{
	struct link_pending p = { 0 }, **at;

	if (atomic_load_explicit(&l->dead, memory_order_relaxed))
		return LINK_DEAD;
	pthread_mutex_lock(&l->lock);
	if (!++l->next_req)
		l->next_req = 1;
	m->req = p.req = l->next_req;
	p.next = l->pending;
	l->pending = &p;
	pthread_mutex_unlock(&l->lock);

	int r = post(l, m, fd, 0);

	pthread_mutex_lock(&l->lock);
	while (!r && !p.done && !atomic_load_explicit(&l->dead, memory_order_relaxed)) {
		if (l->reading)
			pthread_cond_wait(&l->changed, &l->lock);
		else
			read_some(l, UINT64_MAX);
	}
	for (at = &l->pending; *at != &p; at = &(*at)->next)
		;
	*at = p.next;
	pthread_mutex_unlock(&l->lock);
	if (!p.done)
		return LINK_DEAD;
	if (ret_val)
		memcpy(ret_val, p.reply.val, sizeof(p.reply.val));
	if (ret_payload) {
		*ret_payload = p.payload;
		if (ret_payload_bytes)
			*ret_payload_bytes = p.payload ? p.reply.payload_bytes : 0;
	} else {
		free(p.payload);
	}
	return p.reply.status;
}

int link_call(struct link *l, struct sim_request_msg m, uint64_t *ret_val, void **ret_payload,
	      size_t *ret_payload_bytes)
{
	return call(l, &m, -1, ret_val, ret_payload, ret_payload_bytes);
}

int link_call_fd(struct link *l, struct sim_request_msg m, int fd, uint64_t *ret_val)
{
	return call(l, &m, fd, ret_val, NULL, NULL);
}

int link_card_info(struct link *l, uint32_t card, struct sim_card_info *ret_info)
{
	struct sim_request_msg m = { .type = SIM_CARD_INFO, .card = card };
	void *payload = NULL;
	size_t bytes = 0;
	int r = link_call(l, m, NULL, &payload, &bytes);

	if (r == 0 && bytes == sizeof(*ret_info))
		memcpy(ret_info, payload, bytes);
	else if (r == 0)
		r = SIM_INVALID;
	free(payload);
	return r;
}

int link_wait_note(struct link *l, struct sim_reply_msg *ret_note, uint64_t timeout_ns)
{
	uint64_t until = timeout_ns == UINT64_MAX ? UINT64_MAX : sim_clock_ns() + timeout_ns;
	int r = 0;

	pthread_mutex_lock(&l->lock);
	while (!l->notes && !atomic_load_explicit(&l->dead, memory_order_relaxed)) {
		uint64_t now = until == UINT64_MAX ? 0 : sim_clock_ns();

		if (now >= until)
			break;
		if (!l->reading) {
			read_some(l, until == UINT64_MAX ? UINT64_MAX : until - now);
		} else if (until == UINT64_MAX) {
			pthread_cond_wait(&l->changed, &l->lock);
		} else {
			struct timespec ts = { (time_t)(until / 1000000000),
					       (long)(until % 1000000000) };

			pthread_cond_timedwait(&l->changed, &l->lock, &ts);
		}
	}
	struct link_note *note = l->notes;
	if (note) {
		l->notes = note->next;
		*ret_note = note->msg;
		free(note);
		r = 1;
	} else if (atomic_load(&l->dead)) {
		r = -LINK_DEAD;
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}
