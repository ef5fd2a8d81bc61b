/* Registration over the real socket; what a registered client can't do; its death. */
#include "../../fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "../../foreign.h"
#include "abi/shm/fd_exchange.h"
#include "daemon/arbitrate/arbitration.h"
#include "daemon/arbitrate/doorbell.h"
#include "daemon/state/join/registration_socket.h"
#include "daemon/util/peer.h"
#include "net/closer.h"

static struct tenant *make_tenant(struct fixture *f)
{
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"devices\":"
				  "[{\"index\":0,\"memory_bytes\":1073741824,\"cores_pct\":30}]}"));
	return node_find_tenant(f->node, "a");
}

static void test_handshake(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct client c;
	client_register(f, client_connect(t), 0, &c);
	assert_int_equal(c.reply.status, 0);
	assert_int_equal(c.reply.magic, REGISTRATION_MAGIC);
	assert_int_equal(c.reply.slot, 0);
	assert_int_equal(c.reply.epoch, f->node->epoch);
	assert_true(region_control_is_valid(c.control));
	assert_true(region_report_is_valid(c.report));
	assert_string_equal(c.control->tenant_name, "a");
	assert_int_equal(c.control->device_count, 1);
	assert_int_equal(c.control->device[0].quota_bytes, GIB);
	assert_int_equal(c.control->device[0].cores_pct_x100, 3000);
	assert_int_equal(c.control->device[0].limit_pct_x100, 3000);
	assert_int_equal(c.control->device[0].context_bytes, 518 * MIB);
	assert_int_equal(c.control->slot_limit, 1);
	assert_int_equal(c.report->slot[0].state, SLOT_LIVE);
	assert_int_equal(c.report->slot[0].pid, getpid());
	assert_int_equal(c.report->slot[0].generation, 1);
	client_close(&c);
}

/*
 * Runs the loop until there were this many beats; returns the time. Beats are at least `period` apart, so n of them take at
 * least n - 1 periods. There is no upper bound on a busy machine.
 */
static uint64_t ns_of_beats(struct fixture *f, const struct region_control *c, uint32_t count)
{
	uint64_t begun_ns = clock_now_ns();
	uint32_t first = c->heartbeat;
	while (c->heartbeat - first < count)
		fixture_turn(f, 1);
	return clock_now_ns() - begun_ns;
}

/* An older library has nothing but the beats. */
static void test_heartbeat(void **state)
{
	struct fixture *f = *state;
	struct client c;
	client_register(f, client_connect(make_tenant(f)), 0, &c);
	assert_true(ns_of_beats(f, c.control, 5) >= 4 * ARBITRATION_TICK_NS);
	client_close(&c);
}

static void ring(const struct client *c)
{
	atomic_fetch_add(&c->report->bell[0].ring_count, 1);
	syscall(SYS_futex, &c->report->bell[0].ring_count, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A beat has just come, and the one before it a second ago. */
static void wait_for_idle(struct fixture *f, const struct client *c)
{
	unsigned tries = 0;
	while (ns_of_beats(f, c->control, 2) < ARBITRATION_SLEEP_NS)
		assert_true(tries++ < 100);
}

static void test_heartbeat_while_idle(void **state)
{
	struct fixture *f = *state;
	struct client c;
	bool comes_early = false;
	if (!doorbell_is_supported())
		skip();
	client_register(f, client_connect(make_tenant(f)), 0, &c);
	struct region_slot *slot = &c.report->slot[c.reply.slot];
	slot->heeds_owner = 1;
	ring(&c);
	/* Counted from the ring, not from the end of the second; tried again if the machine stopped for this long. */
	for (unsigned i = 0; i < 10 && !comes_early; i++) {
		wait_for_idle(f, &c);
		slot->device[0].waiting = 1;
		ring(&c);
		comes_early = ns_of_beats(f, c.control, 3) < ARBITRATION_SLEEP_NS;
		slot->device[0].waiting = 0;
		ring(&c);
	}
	assert_true(comes_early);
	wait_for_idle(f, &c);
	client_close(&c);
}

static const struct region_control *map_control(int pid, int fd)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	int own = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(own >= 0);
	const struct region_control *c = mmap(NULL, sizeof(*c), PROT_READ, MAP_SHARED, own, 0);
	assert_ptr_not_equal(c, MAP_FAILED);
	close(own);
	return c;
}

/* However a daemon ends, its tenants' processes can read that it has. */
static void test_end_of_the_owner(void **state)
{
	struct region_host host = { 0 };
	int fds[2], fd;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	int pid = fork();
	if (pid == 0) {
		if (region_host_create(&host, "a", 1, 1, NULL) == 0 &&
		    write(fds[1], &host.control_fd, sizeof(fd)) == (ssize_t)sizeof(fd))
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &fd, sizeof(fd)), sizeof(fd));
	const struct region_control *c = map_control(pid, fd);
	assert_true(c->owner);
	assert_false(region_has_lost_owner(c));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(region_has_lost_owner(c));

	assert_int_equal(region_host_create(&host, "a", 2, 1, NULL), 0);
	c = map_control(getpid(), host.control_fd);
	assert_false(region_has_lost_owner(c));
	region_host_free(&host);
	assert_true(region_has_lost_owner(c));
	close(fds[0]);
	close(fds[1]);
}

static void test_seals(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct client c;
	char path[64];
	client_register(f, client_connect(t), 0, &c);
	assert_int_equal(c.reply.status, 0);

	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, c.control_fd, 0),
			 MAP_FAILED);
	assert_int_equal(mprotect((void *)(uintptr_t)c.control, 4096, PROT_READ | PROT_WRITE), -1);
	assert_true(pwrite(c.control_fd, "x", 1, 0) < 0);
	assert_int_equal(ftruncate(c.control_fd, 0), -1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", c.control_fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
				 MAP_FAILED);
		assert_true(pwrite(fd, "x", 1, 0) < 0);
		assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
				 -1);
		close(fd);
	}
	assert_int_equal(ftruncate(c.report_fd, 0), -1);
	assert_int_equal(ftruncate(c.report_fd, sizeof(*c.report) + 4096), -1);
	assert_int_equal(fcntl(c.report_fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	c.report->slot[0].device[0].denied = 7; /* its own slot is writable */
	client_close(&c);
}

static void hold_memory(struct client *c)
{
	struct region_slot_device *d = &c->report->slot[c->reply.slot].device[0];
	d->denied = 3;
	d->waited_ns = 2 * NSEC_PER_SEC;
	d->used_bytes = 100 * MIB;
}

static void test_death_gives_back(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, hold_memory);
	assert_int_equal(t->process_count, 1);
	assert_int_equal(tenant_usage(t, 0).used_bytes, 100 * MIB);
	client_kill(pid);
	fixture_until(f, t->process_count == 0);
	struct tenant_usage usage = tenant_usage(t, 0);
	assert_int_equal(usage.used_bytes, 0);
	assert_int_equal(usage.denied, 3);
	assert_int_equal(usage.waited_ns, 2 * NSEC_PER_SEC);
	assert_int_equal(t->region.report->slot[0].state, SLOT_EMPTY);
	assert_ptr_equal(node_find_tenant(f->node, "a"), t); /* not held: stays */
}

static void test_lowest_free_slot(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int first = client_spawn(f, t, 0, NULL), second = client_spawn(f, t, 0, NULL);
	assert_int_equal(t->process[0]->pid, first);
	assert_int_equal(t->process[1]->pid, second);
	assert_int_equal(t->region.control->slot_limit, 2);
	t->region.report->slot[0].heeds_owner = 1;
	client_kill(first);
	fixture_until(f, t->process_count == 1);
	int third = client_spawn(f, t, 0, NULL);
	assert_int_equal(t->process[0]->pid, third);
	assert_int_equal(t->region.report->slot[0].generation, 2);
	assert_int_equal(t->region.report->slot[0].heeds_owner, 0);
	client_kill(second);
	client_kill(third);
}

static uint64_t free_depth_ms(const struct tenant *t)
{
	return t->region.control->device[0].free_depth_ns / NSEC_PER_MSEC;
}

/* The bound is small where a neighbour may come in at any moment. */
static void test_a_tenant_alone_may_have_more_in_flight(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make_tenant(f);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"b\",\"devices\":"
				  "[{\"index\":0,\"memory_bytes\":1073741824}]}"));
	struct tenant *b = node_find_tenant(f->node, "b");
	int first = client_spawn(f, a, 0, NULL);
	assert_int_equal(free_depth_ms(a), 100);
	int other = client_spawn(f, b, 0, NULL);
	assert_int_equal(free_depth_ms(a), 10);
	assert_int_equal(free_depth_ms(b), 10);
	int second = client_spawn(f, a, 0, NULL); /* its own process is not another one */
	client_kill(other);
	fixture_until(f, b->process_count == 0);
	assert_int_equal(free_depth_ms(a), 100);
	client_kill(first);
	client_kill(second);
}

static void test_exec_registers_again(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct client c, d, e;
	client_register(f, client_connect(t), 0, &c);
	c.report->slot[0].device[0].used_bytes = 5 * MIB;
	client_register(f, client_connect(t), 0, &d);
	assert_int_equal(d.reply.status, 0);
	assert_int_equal(d.reply.slot, 0);
	assert_int_equal(t->process_count, 1);
	assert_int_equal(tenant_usage(t, 0).used_bytes, 0);
	/* It names an earlier daemon that never knew it: it gets no second slot, whatever it wrote into the first. */
	d.report->slot[0].migrated = 1;
	client_register(f, client_connect(t), 77, &e);
	assert_int_equal(e.reply.status, 0);
	assert_int_equal(e.reply.slot, 0);
	assert_int_equal(t->process_count, 1);
	client_close(&c);
	client_close(&d);
	client_close(&e);
}

static void test_asks_again(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct client c, d;
	client_register(f, client_connect(t), 0, &c);
	c.report->slot[0].device[0].used_bytes = 5 * MIB;
	/* It took this daemon for dead, but it is the same one: the slot and its contents stay. */
	client_register(f, client_connect(t), f->node->epoch, &d);
	assert_int_equal(d.reply.status, 0);
	assert_int_equal(d.reply.slot, 0);
	assert_int_equal(t->process_count, 1);
	assert_int_equal(tenant_usage(t, 0).used_bytes, 5 * MIB);
	client_close(&c);
	client_close(&d);
}

static void test_gone_before_the_reply(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct registration_request request = { .magic = REGISTRATION_MAGIC,
						.version = REGISTRATION_VERSION };
	int fd = client_connect(t);
	assert_int_equal(send(fd, &request, sizeof(request), 0), sizeof(request));
	close(fd);
	fixture_turn(f, 20);
	assert_int_equal(t->process_count, 0);
}

static void send_raw(struct fixture *f, struct tenant *t, const void *data, size_t size, int status,
		     const char *word)
{
	int fd = client_connect(t);
	struct registration_reply reply = { 0 };
	assert_int_equal(send(fd, data, size, 0), size);
	fixture_until(f, recv(fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_PEEK) > 0);
	assert_int_equal(recv(fd, &reply, sizeof(reply), MSG_DONTWAIT), sizeof(reply));
	assert_int_equal(reply.status, status);
	assert_non_null(strstr(reply.message, word));
	fixture_until(f, recv(fd, &reply, sizeof(reply), MSG_DONTWAIT) == 0); /* closed */
	close(fd);
}

static void test_malformed(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct registration_request good = { .magic = REGISTRATION_MAGIC,
					     .version = REGISTRATION_VERSION };
	struct registration_request bad = good;
	char longer[sizeof(good) + 100] = { 0 };
	send_raw(f, t, "x", 1, EPROTO, "not a valid registration");
	bad.magic = 1;
	send_raw(f, t, &bad, sizeof(bad), EPROTO, "not a valid registration");
	bad = good;
	bad.version = 99;
	send_raw(f, t, &bad, sizeof(bad), EPROTONOSUPPORT, "version 99");
	memcpy(longer, &good, sizeof(good));
	send_raw(f, t, longer, sizeof(longer), EPROTO, "not a valid registration");
	assert_int_equal(t->process_count, 0);
}

static void test_silent_clients(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int silent[REGISTRATION_MAX_PENDING];
	struct client c;
	for (unsigned i = 0; i < REGISTRATION_MAX_PENDING; i++) {
		silent[i] = client_connect(t);
		assert_true(silent[i] >= 0);
		fixture_turn(f, 1);
	}
	client_register(f, client_connect(t), 0, &c);
	/* A request that crosses the refusal takes it along. */
	assert_true(c.reply.status == EBUSY || c.reply.status == ECONNRESET);
	close(silent[0]);
	fixture_turn(f, 10);
	client_register(f, client_connect(t), 0, &c);
	assert_int_equal(c.reply.status, 0);
	client_close(&c);
	for (unsigned i = 1; i < REGISTRATION_MAX_PENDING; i++)
		close(silent[i]);
}

static void test_descriptors_sent_along_are_closed(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct registration_request request = { .magic = REGISTRATION_MAGIC,
						.version = REGISTRATION_VERSION };
	int fds[2], fd = client_connect(t);
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	foreign_send(fd, &request, sizeof(request), fds[1]);
	close(fds[1]);
	char x;
	/* No process has the other end any more. */
	fixture_until(f, read(fds[0], &x, 1) == 0);
	close(fds[0]);
	close(fd);
}

/* A refused gift, a request that may not have descriptors, and one connection too many. */
static void test_a_descriptor_that_cannot_be_closed(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct registration_request request = { .magic = REGISTRATION_MAGIC,
						.version = REGISTRATION_VERSION };
	struct fd_exchange_request give = { .magic = FD_EXCHANGE_MAGIC,
					    .version = FD_EXCHANGE_VERSION,
					    .op = FD_EXCHANGE_PUT,
					    .key = 1,
					    .bytes = 1 };
	struct client c;
	client_register(f, client_connect(t), 0, &c);
	struct foreign_lingering lingering[2];
	int fds[2];
	uint64_t begun_ns = clock_now_ns();
	for (unsigned i = 0; i < 2; i++) {
		foreign_linger(&lingering[i]);
		fds[i] = client_connect(t);
		if (i)
			foreign_send(fds[i], &give, sizeof(give), lingering[i].fd);
		else
			foreign_send(fds[i], &request, sizeof(request), lingering[i].fd);
		foreign_let_go(&lingering[i]);
		fixture_turn(f, 50);
	}
	assert_true(clock_now_ns() - begun_ns < 10 * NSEC_PER_SEC);
	/* Until they are closed its user gets nothing more; then it does. */
	fixture_until(f, closer_is_stuck(getuid()));
	struct client d;
	client_register(f, client_connect(t), 0, &d);
	assert_int_equal(d.reply.status, EBUSY);
	for (unsigned i = 0; i < 2; i++) {
		foreign_end(&lingering[i]);
		close(fds[i]);
	}
	fixture_until(f, !closer_is_stuck(getuid()));
	client_close(&c);
}

static void test_old_kernel(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	peer_pretend_old_kernel(true);
	int pid = client_spawn(f, t, 0, hold_memory);
	assert_int_equal(t->process_count, 1);
	assert_int_equal(t->process[0]->pid, pid);
	client_kill(pid);
	fixture_until(f, t->process_count == 0);
	peer_pretend_old_kernel(false);
}

static void claim_too_much(struct client *c)
{
	c->report->slot[c->reply.slot].device[0].used_bytes = UINT64_MAX;
}

static void test_corrupt_report(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct client c;
	int pid = client_spawn(f, t, 0, claim_too_much);
	assert_int_equal(tenant_usage(t, 0).used_bytes, FAKE_CARD_BYTES);
	assert_true(t->corrupt);
	client_register(f, client_connect(t), 0, &c);
	assert_int_equal(c.reply.status, EBADMSG);
	client_kill(pid);
	fixture_until(f, t->process_count == 0);
}

static void test_socket_is_the_tenants_alone(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	struct stat st;
	char path[NODE_PATH_MAX];
	tenant_path(t, "allot.sock", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_uid, t->terms.uid);
}

#define test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_handshake),
		test(test_heartbeat),
		test(test_heartbeat_while_idle),
		test(test_end_of_the_owner),
		test(test_a_tenant_alone_may_have_more_in_flight),
		test(test_seals),
		test(test_death_gives_back),
		test(test_lowest_free_slot),
		test(test_exec_registers_again),
		test(test_asks_again),
		test(test_gone_before_the_reply),
		test(test_malformed),
		test(test_silent_clients),
		test(test_descriptors_sent_along_are_closed),
		test(test_a_descriptor_that_cannot_be_closed),
		test(test_old_kernel),
		test(test_corrupt_report),
		test(test_socket_is_the_tenants_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
