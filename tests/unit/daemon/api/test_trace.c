/* The requests of allot trace, and how a process gets its ring: over the real socket. */
#include "../fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/shm/trace_ring.h"
#include "daemon/api/control.h"
#include "daemon/api/dispatch.h"
#include "daemon/export/trace/tenant_trace.h"

#define TRACE "{\"version\":1,\"op\":\"trace\",\"name\":\"a\"}"
#define POLL "{\"version\":1,\"op\":\"trace_poll\"}"
#define END "{\"version\":1,\"op\":\"trace_end\"}"

static struct tenant *make_tenant(struct fixture *f)
{
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"devices\":"
				  "[{\"index\":0,\"memory_bytes\":1073741824,\"cores_pct\":30}]}"));
	return node_find_tenant(f->node, "a");
}

static uint32_t order(const struct tenant *t)
{
	return atomic_load(&t->region.control->trace);
}

/* Asks as the library does; the reply's status, and a descriptor or -1. */
static int ask_ring(struct fixture *f, const struct tenant *t, uint32_t asked, int *ret_fd)
{
	struct trace_request request = { TRACE_MAGIC, TRACE_VERSION, asked, 0 };
	struct trace_reply reply = { 0 };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { &reply, sizeof(reply) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof(control.space) };
	int fd = client_connect(t);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	assert_int_equal(send(fd, &request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
	fixture_until(f, poll(&p, 1, 0) > 0);
	assert_int_equal(recvmsg(fd, &message, 0), sizeof(reply));
	assert_int_equal(reply.magic, TRACE_MAGIC);
	close(fd);
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	*ret_fd = -1;
	if (c)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return reply.status;
}

static void test_a_trace(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct client c;
	int fd;
	client_register(f, client_connect(t), 0, &c);
	assert_int_equal(order(t), 0);
	fixture_refused(f, POLL, EINVAL, "records no trace");
	json_t *r = fixture_ok(f, TRACE);
	assert_string_equal(json_string_value(json_object_get(r, "name")), "a");
	json_decref(r);
	uint32_t first = order(t);
	assert_int_not_equal(trace_clock_of(first), TRACE_NO_CLOCK);

	/* A process that has not asked yet, and then asks. */
	r = fixture_ok(f, POLL);
	assert_int_equal(json_array_size(json_object_get(r, "rings")), 0);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(r, "untraced"), 0)),
			 getpid());
	json_decref(r);
	assert_int_equal(ask_ring(f, t, first + TRACE_ORDER_STEP, &fd), ENOENT);
	assert_int_equal(ask_ring(f, t, first, &fd), 0);
	assert_true(fd >= 0);
	const struct trace_ring *ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE,
					     MAP_SHARED, fd, 0);
	assert_ptr_not_equal(ring, MAP_FAILED);
	assert_true(trace_ring_is_valid(ring));
	assert_int_equal(ring->clock, trace_clock_of(first));
	assert_int_equal(ftruncate(fd, 0), -1);
	r = fixture_ok(f, POLL);
	const json_t *ring_json = json_array_get(json_object_get(r, "rings"), 0);
	assert_int_equal(json_integer_value(json_object_get(ring_json, "pid")), getpid());
	assert_int_equal(f->session.fd_count, 1);
	assert_int_equal(json_array_size(json_object_get(r, "untraced")), 0);
	const json_t *device = json_array_get(json_object_get(r, "devices"), 0);
	assert_int_equal(json_integer_value(json_object_get(device, "memory_quota_bytes")), GIB);
	assert_true(json_is_array(json_object_get(device, "leases")));
	json_decref(r);

	json_decref(fixture_ok(f, END));
	assert_int_equal(order(t), 0);
	assert_int_equal(ask_ring(f, t, first, &fd), ENOENT);
	/* The next one is another's order. */
	json_decref(fixture_ok(f, TRACE));
	assert_int_not_equal(order(t), first);
	json_decref(fixture_ok(f, END));
	json_decref(fixture_ok(f, END));
	munmap((void *)(uintptr_t)ring, sizeof(*ring));
	client_close(&c);
}

static void test_refusals(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct session other = { .node = f->node, .pid = 7, .uid = f->session.uid };
	int fd;
	fixture_refused(f, "{\"version\":1,\"op\":\"trace\"}", EINVAL, "name: missing");
	fixture_refused(f, "{\"version\":1,\"op\":\"trace\",\"name\":\"x\"}", ENOENT,
			"no tenant 'x'");
	assert_int_equal(ask_ring(f, t, 0, &fd), EPERM); /* it has not registered */
	json_decref(fixture_ok(f, TRACE));
	fixture_refused(f, TRACE, EBUSY, "already traces tenant 'a'");
	char *line = dispatch_request(&other, TRACE, strlen(TRACE));
	assert_non_null(strstr(line, "traced already, by process"));
	free(line);
	/* The session's end is the trace's. */
	uint32_t first = order(t);
	session_drop(&f->session);
	assert_int_equal(order(t), 0);
	line = dispatch_request(&other, TRACE, strlen(TRACE));
	assert_non_null(strstr(line, "\"ok\":true"));
	free(line);
	assert_int_not_equal(order(t), first);
	session_end(&other);
	other.uid = f->session.uid + 1;
	line = dispatch_request(&other, TRACE, strlen(TRACE));
	assert_non_null(strstr(line, "belongs to uid"));
	free(line);
}

static void test_the_tenant_ends(void **state)
{
	struct fixture *f = *state;
	make_tenant(f);
	json_decref(fixture_ok(f, TRACE));
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}"));
	json_t *r = fixture_ok(f, POLL);
	assert_true(json_is_true(json_object_get(r, "ended")));
	json_decref(r);
	json_decref(fixture_ok(f, END));
}

/* By the control socket, where descriptors go with the reply that names them. */
static void test_rings_are_handed_on(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct client c;
	struct error err;
	int fds[2], ring_fd;
	char text[8192];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SESSION_MAX_FDS * sizeof(int))];
	} control;
	struct iovec part = { text, sizeof(text) - 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof(control.space) };
	client_register(f, client_connect(t), 0, &c);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(control_serve(f->node->control, fds[1], &err), 0);
	assert_true(send(fds[0], TRACE "\n", sizeof(TRACE), MSG_NOSIGNAL) > 0);
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	fixture_until(f, poll(&p, 1, 0) > 0);
	assert_true(recv(fds[0], text, sizeof(text), 0) > 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask_ring(f, t, order(t), &ring_fd), 0);
		close(ring_fd);
	}
	assert_true(send(fds[0], POLL "\n", sizeof(POLL), MSG_NOSIGNAL) > 0);
	fixture_until(f, poll(&p, 1, 0) > 0);
	ssize_t n = recvmsg(fds[0], &message, MSG_CMSG_CLOEXEC);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "\"number\":3"));
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	assert_non_null(header);
	assert_int_equal(header->cmsg_len, CMSG_LEN(3 * sizeof(int)));
	for (size_t i = 0; i < 3; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
		assert_int_equal(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK, F_SEAL_SHRINK);
		close(fd);
	}
	/* The connection that traced is closed. */
	close(fds[0]);
	fixture_until(f, order(t) == 0);
	assert_null(t->trace);
	client_close(&c);
}

static void test_the_clock(void **state)
{
	assert_int_equal(trace_clock_choose(true, "tsc"), TRACE_COUNTER);
	assert_int_equal(trace_clock_choose(true, "kvm-clock"), TRACE_COUNTER);
	assert_int_equal(trace_clock_choose(true, ""), TRACE_COUNTER);
	assert_int_equal(trace_clock_choose(true, "hpet"), TRACE_REALTIME);
	assert_int_equal(trace_clock_choose(true, "acpi_pm"), TRACE_REALTIME);
	assert_int_equal(trace_clock_choose(false, "tsc"), TRACE_REALTIME);
	enum trace_clock clocks[] = { TRACE_REALTIME, trace_clock_here() };
	for (int i = 0; i < 2; i++) {
		struct trace_moment a = trace_clock_now(clocks[i]);
		usleep(2000);
		struct trace_moment b = trace_clock_now(clocks[i]);
		assert_true(b.ticks > a.ticks && b.now_ns >= a.now_ns + 1000000);
	}
}

#define trace_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		trace_test(test_a_trace),         trace_test(test_refusals),
		trace_test(test_the_tenant_ends), trace_test(test_rings_are_handed_on),
		cmocka_unit_test(test_the_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
