/* Reading what a process records: in order, once, with what was lost counted; and a process that lies. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/trace/ring_reader.h"
#include "ring.h"

#define LATER (RING_READER_PATIENCE_NS + 1)
#define STORM 300000
#define UNTIL 1000 /* ticks */

static struct trace_ring *ring;
static int ring_fd;
static struct ring_reader reader;
static uint64_t seen, first, last;

static void note(void *data, const struct trace_event *e)
{
	if (!seen++)
		first = e->amount;
	else
		assert_true(e->amount > last);
	last = e->amount;
}

static void put(uint64_t amount)
{
	trace_ring_write(ring, atomic_fetch_add(&ring->next, 1) + 1,
			 &(struct trace_event){ .kind = TRACE_USED, .amount = amount });
}

static size_t drain(uint64_t now_ns, bool is_last)
{
	return ring_reader_drain(&reader, UNTIL, now_ns, is_last, note, NULL);
}

static int setup(void **state)
{
	struct error err;
	seen = first = last = 0;
	ring = ring_make(&ring_fd);
	return ring ? ring_reader_open(ring_fd, &reader, &err) : -1;
}

static int teardown(void **state)
{
	ring_reader_close(&reader);
	ring_drop(ring, ring_fd);
	return 0;
}

static void test_each_event_once(void **state)
{
	assert_int_equal(drain(1, false), 0);
	for (uint64_t i = 1; i <= 10; i++)
		put(i);
	assert_int_equal(drain(1, false), 10);
	assert_int_equal(drain(1, false), 0);
	put(11);
	assert_int_equal(drain(1, true), 1);
	assert_int_equal(last, 11);
	assert_int_equal(reader.lost, 0);
}

static void test_a_slow_reader_loses_the_oldest(void **state)
{
	for (uint64_t i = 1; i <= 3 * TRACE_EVENTS; i++)
		put(i);
	assert_int_equal(drain(1, false), TRACE_EVENTS);
	assert_int_equal(first, 2 * TRACE_EVENTS + 1);
	assert_int_equal(reader.lost, 2 * TRACE_EVENTS);
}

/* A thread that is in the midst of it is waited for, but not for ever: it may have been killed. */
static void test_an_unfinished_event(void **state)
{
	put(1);
	uint64_t number = atomic_fetch_add(&ring->next, 1) + 1;
	put(3);
	assert_int_equal(drain(1, false), 1);
	assert_int_equal(drain(2, false), 0);
	struct trace_place *p = &ring->place[number % TRACE_EVENTS];
	uint64_t amount = 2;
	memcpy((char *)p->word + offsetof(struct trace_event, amount), &amount, sizeof(amount));
	((char *)p->word)[offsetof(struct trace_event, kind)] = TRACE_USED;
	atomic_store(&p->number, number);
	assert_int_equal(drain(3, false), 2);
	assert_int_equal(last, 3);
	assert_int_equal(reader.lost, 0);

	atomic_fetch_add(&ring->next, 1);
	put(5);
	assert_int_equal(drain(10, false), 0);
	assert_int_equal(drain(10 + LATER, false), 1);
	assert_int_equal(reader.lost, 1);
	atomic_fetch_add(&ring->next, 1);
	put(7);
	assert_int_equal(drain(11 + LATER, true), 1);
	assert_int_equal(reader.lost, 1);
}

/* Until their time is known, unless that never comes. */
static void test_an_event_that_is_too_new(void **state)
{
	struct trace_event e = {
		.kind = TRACE_KERNEL, .begin = UNTIL - 10, .end = UNTIL, .amount = 1
	};
	trace_ring_write(ring, atomic_fetch_add(&ring->next, 1) + 1, &e);
	e.end = UNTIL + 1;
	e.amount = 2;
	trace_ring_write(ring, atomic_fetch_add(&ring->next, 1) + 1, &e);
	put(3);
	assert_int_equal(drain(1, false), 1);
	assert_int_equal(drain(2, false), 0);
	assert_int_equal(ring_reader_drain(&reader, UNTIL + 1, 3, false, note, NULL), 2);

	e.amount = 4;
	trace_ring_write(ring, atomic_fetch_add(&ring->next, 1) + 1, &e);
	assert_int_equal(drain(10, false), 0);
	assert_int_equal(drain(10 + LATER, false), 1);
	e.amount = 5;
	trace_ring_write(ring, atomic_fetch_add(&ring->next, 1) + 1, &e);
	assert_int_equal(drain(11 + LATER, true), 1);
	assert_int_equal(last, 5);
	assert_int_equal(reader.lost, 0);
}

/* A launch tells of their number each TRACE_STEP only; the places tell of the rest. */
static void test_events_that_are_not_told_of(void **state)
{
	for (uint64_t i = 1; i <= 10; i++)
		put(i);
	atomic_store(&ring->next, 4);
	assert_int_equal(drain(1, false), 10);
	assert_int_equal(last, 10);
	/* One that is being written is the end for now, and none that is lost. */
	atomic_store(&ring->next, 10);
	put(11);
	put(12);
	atomic_store(&ring->next, 4);
	atomic_store(&ring->place[11].number, 0);
	assert_int_equal(drain(1, false), 0);
	assert_int_equal(drain(1 + LATER, true), 0);
	atomic_store(&ring->place[11].number, 11);
	assert_int_equal(drain(2 + LATER, true), 2);
	assert_int_equal(last, 12);
	assert_int_equal(reader.lost, 0);
}

static void test_what_cannot_be(void **state)
{
	struct trace_event bad[] = {
		{ .kind = 0 },
		{ .kind = TRACE_KINDS },
		{ .kind = 255 },
		{ .kind = TRACE_KERNEL, .begin = 2, .end = 1 },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		trace_ring_write(ring, atomic_fetch_add(&ring->next, 1) + 1, &bad[i]);
	assert_int_equal(drain(1, false), 0);
	assert_int_equal(reader.lost, sizeof(bad) / sizeof(bad[0]));
	/* Counts that go back, or far ahead. */
	atomic_store(&ring->next, 0);
	assert_int_equal(drain(1, false), 0);
	atomic_store(&ring->next, UINT64_MAX);
	assert_int_equal(drain(1, true), 0);
	assert_int_equal(drain(1, true), 0);
	assert_int_equal(reader.done, UINT64_MAX);
}

static void test_names(void **state)
{
	struct trace_name name;
	assert_false(ring_reader_name(&reader, &name));
	atomic_store(&ring->name_count, 2);
	memset(ring->name[0].text, 'x', TRACE_NAME_MAX);
	assert_false(ring_reader_name(&reader, &name));
	atomic_store(&ring->name[0].is_written, 1);
	assert_true(ring_reader_name(&reader, &name));
	assert_int_equal(strlen(name.text), TRACE_NAME_MAX - 1);
	assert_false(ring_reader_name(&reader, &name));
	for (size_t i = 0; i < TRACE_NAMES; i++)
		atomic_store(&ring->name[i].is_written, 1);
	atomic_store(&ring->name_count, UINT32_MAX);
	unsigned count = 1;
	while (ring_reader_name(&reader, &name))
		count++;
	assert_int_equal(count, TRACE_NAMES);
}

static void test_what_is_no_ring(void **state)
{
	struct ring_reader r;
	struct error err;
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(ring_reader_open(fds[0], &r, &err), -EPROTO);
	close(fds[0]);
	close(fds[1]);
	/* It could be cut under the reader. */
	int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, sizeof(struct trace_ring)), 0);
	assert_int_equal(ring_reader_open(fd, &r, &err), -EPROTO);
	close(fd);
	fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(ring_reader_open(fd, &r, &err), -EPROTO);
	close(fd);
}

static void *record_storm(void *data)
{
	for (uint64_t i = 1; i <= STORM; i++)
		put(i);
	return NULL;
}

/* Read while it is written: each event whole and in order, and every one read or counted as lost. */
static void test_while_it_is_written(void **state)
{
	pthread_t thread;
	uint64_t now_ns = 1;
	assert_int_equal(pthread_create(&thread, NULL, record_storm, NULL), 0);
	while (reader.done < STORM / 2)
		drain(now_ns++, false);
	pthread_join(thread, NULL);
	drain(now_ns, true);
	assert_int_equal(reader.done, STORM);
	assert_int_equal(seen + reader.lost, STORM);
	assert_int_equal(last, STORM);
}

#define ring_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ring_test(test_each_event_once),
		ring_test(test_a_slow_reader_loses_the_oldest),
		ring_test(test_an_unfinished_event),
		ring_test(test_an_event_that_is_too_new),
		ring_test(test_events_that_are_not_told_of),
		ring_test(test_what_cannot_be),
		ring_test(test_names),
		ring_test(test_what_is_no_ring),
		ring_test(test_while_it_is_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
