/* library/memory/fd_tag.h: the mark stays with the open file, wherever its descriptors go. */
#include "../test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "library/memory/fd_tag.h"

static int file(void)
{
	int fd = memfd_create("tagged", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void test_follows_the_open_file(void **state)
{
	struct fd_tag tag = { .key = fd_tag_new_key(), .pages = 131072 }, found = { 0 };
	char path[32];
	int fd = file();

	assert_true(fd_tag_set(fd, &tag));
	int copy = dup(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int another = open(path, O_RDWR);
	close(fd);
	assert_true(fd_tag_get(copy, &found));
	assert_int_equal(found.key, tag.key);
	assert_int_equal(found.pages, tag.pages);
	/* The same file, opened anew, is another open file. */
	assert_true(another >= 0);
	assert_false(fd_tag_get(another, &found));
	close(copy);
	close(another);
}

static void test_of_no_pages(void **state)
{
	struct fd_tag tag = { .key = 1 }, found = { .pages = 7 };
	int fd = file();

	assert_true(fd_tag_set(fd, &tag));
	assert_true(fd_tag_get(fd, &found));
	assert_int_equal(found.key, 1);
	assert_int_equal(found.pages, 0);
	close(fd);
}

/* As the simulated driver's: the write end of a pipe. */
static void test_of_a_descriptor_for_writing(void **state)
{
	struct fd_tag tag = { .key = fd_tag_new_key(), .pages = 1 }, found = { 0 };
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_true(fd_tag_set(fds[1], &tag));
	assert_true(fd_tag_get(fds[1], &found));
	assert_int_equal(found.key, tag.key);
	assert_false(fd_tag_get(fds[0], &found));
	close(fds[0]);
	close(fds[1]);
}

static void test_what_has_none(void **state)
{
	struct fd_tag found = { .key = 5 };
	struct flock whole = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fd = file();

	assert_false(fd_tag_get(fd, &found));
	assert_false(fd_tag_get(-1, &found));
	assert_false(fd_tag_get(1 << 20, &found));
	/* Another program's lock: of the whole file, with no known end. */
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
	assert_false(fd_tag_get(fd, &found));
	assert_int_equal(found.key, 5);
	assert_false(fd_tag_set(-1, &(struct fd_tag){ .key = 1 }));
	close(fd);
}

static void test_keys_differ(void **state)
{
	uint64_t key[64];

	for (int i = 0; i < 64; i++) {
		key[i] = fd_tag_new_key();
		assert_true(key[i] > 0 && key[i] < 1ULL << 61);
		for (int j = 0; j < i; j++)
			assert_true(key[i] != key[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows_the_open_file),
		cmocka_unit_test(test_of_no_pages),
		cmocka_unit_test(test_of_a_descriptor_for_writing),
		cmocka_unit_test(test_what_has_none),
		cmocka_unit_test(test_keys_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
