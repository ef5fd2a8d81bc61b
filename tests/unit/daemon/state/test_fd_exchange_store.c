/* Descriptors that processes of a tenant pass to each other. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/state/fd_exchange_store.h"

static int setup(void **state)
{
	*state = fd_store_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	fd_store_free(*state);
	return 0;
}

/* One end of a pipe; the other end shows whether it is still open. */
static int pipe_end(int *ret_other)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	*ret_other = fds[0];
	return fds[1];
}

/* Its writers are gone. */
static bool has_ended(int other)
{
	char c;

	return read(other, &c, 1) == 0;
}

static int give(struct fd_store *s, int pid, uint64_t key, int *fd)
{
	struct error err = { 0 };

	return fd_store_put(s, pid, key, 4096, fd, &err);
}

static void test_given_and_taken(void **state)
{
	struct fd_store *s = *state;
	uint64_t bytes = 0;
	int other, fd = pipe_end(&other), kept = fd;

	assert_int_equal(fd_store_get(s, 7, &bytes), -ENOENT);
	assert_int_equal(give(s, 1, 7, &fd), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(fd_store_get(s, 7, &bytes), kept);
	assert_int_equal(bytes, 4096);
	/* Another process can neither drop it nor replace it. */
	fd_store_delete(s, 2, 7);
	int more_other, more = pipe_end(&more_other);
	assert_int_equal(give(s, 2, 7, &more), -EEXIST);
	assert_true(more >= 0);
	assert_false(has_ended(other));
	/* The process that gave it can do both. */
	assert_int_equal(give(s, 1, 7, &more), 0);
	assert_true(has_ended(other));
	fd_store_delete(s, 1, 7);
	assert_true(has_ended(more_other));
	assert_int_equal(fd_store_get(s, 7, &bytes), -ENOENT);
	close(other);
	close(more_other);
}

static void test_a_process_ends(void **state)
{
	struct fd_store *s = *state;
	uint64_t bytes;
	int other[4];

	for (int i = 0; i < 4; i++) {
		int fd = pipe_end(&other[i]);
		assert_int_equal(give(s, 1 + i % 2, 10 + (uint64_t)i, &fd), 0);
	}
	fd_store_delete(s, 1, 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(has_ended(other[i]), i % 2 == 0);
		assert_int_equal(fd_store_get(s, 10 + (uint64_t)i, &bytes) >= 0, i % 2);
		close(other[i]);
	}
}

/* Descriptors whose close could block, and invalid ones. */
static void test_what_is_not_kept(void **state)
{
	struct fd_store *s = *state;
	int none = -1, other, fd = pipe_end(&other);
	int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_int_equal(give(s, 1, 1, &none), -EBADF);
	assert_int_equal(give(s, 1, 1, &file), -EBADF);
	assert_int_equal(give(s, 1, 1, &null), -EBADF);
	assert_int_equal(give(s, 1, 0, &fd), -EINVAL);
	assert_true(file >= 0 && null >= 0 && fd >= 0);
	int memory = memfd_create("test", MFD_CLOEXEC);
	assert_int_equal(give(s, 1, 1, &memory), 0);
	close(file);
	close(null);
	close(fd);
	close(other);
}

static void test_there_is_an_end(void **state)
{
	struct fd_store *s = *state;
	int other, fd = pipe_end(&other);

	for (uint64_t key = 1; key <= FD_STORE_MOST; key++) {
		int more = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (more < 0) {
			print_message("only %u descriptors may be open here\n", (unsigned)key);
			skip();
		}
		assert_int_equal(give(s, 1, key, &more), 0);
	}
	assert_int_equal(give(s, 1, FD_STORE_MOST + 1, &fd), -ENOSPC);
	fd_store_delete(s, 1, 5);
	assert_int_equal(give(s, 1, FD_STORE_MOST + 1, &fd), 0);
	close(other);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_given_and_taken),
		test(test_a_process_ends),
		test(test_what_is_not_kept),
		test(test_there_is_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
