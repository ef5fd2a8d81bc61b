#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/lock.h"

static char base[64], paths[LOCK_DIRS][80];
static const char *dirs[LOCK_DIRS] = { paths[0], paths[1] };

static int setup(void **state)
{
	strcpy(base, "/tmp/allot-lock-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	for (unsigned i = 0; i < LOCK_DIRS; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/dir%u", base, i);
	lock_set_dirs(dirs);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	return nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void test_card(void **state)
{
	int a[LOCK_DIRS], b[LOCK_DIRS];
	struct error err;
	char pid[16];
	struct stat st;
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), 0);
	assert_true(a[0] >= 0 && a[1] >= 0);
	assert_int_equal(stat(paths[0], &st), 0);
	assert_int_equal(st.st_mode & 07777, 01777);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_int_equal(lock_card("GPU-1", "/y", b, &err), -EBUSY);
	assert_non_null(strstr(err.text, pid));
	assert_non_null(strstr(err.text, "/x"));
	assert_int_equal(lock_card("GPU-2", "/y", b, &err), 0);
	lock_release(b);
	lock_release(a);
	assert_int_equal(lock_card("GPU-1", "/y", b, &err), 0);
	lock_release(b);
}

static void test_unusable_directories(void **state)
{
	int a[LOCK_DIRS];
	struct error err;
	/* A link may lead anywhere; one good directory is enough, none is not. */
	assert_int_equal(symlink("/tmp", paths[0]), 0);
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), 0);
	assert_true(a[0] == -1 && a[1] >= 0);
	lock_release(a);
	unlink(paths[0]);
	assert_int_equal(symlink("/tmp", paths[0]), 0);
	char other[160];
	snprintf(other, sizeof(other), "%s.moved", paths[1]);
	assert_int_equal(rename(paths[1], other), 0);
	assert_int_equal(symlink(other, paths[1]), 0);
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), -EACCES);
}

static void test_link_as_lock_file(void **state)
{
	int a[LOCK_DIRS];
	struct error err;
	char path[160], target[160];
	assert_int_equal(lock_card("GPU-0", "/x", a, &err), 0);
	lock_release(a);
	snprintf(path, sizeof(path), "%s/GPU-1.lock", paths[0]);
	snprintf(target, sizeof(target), "%s/victim", base);
	assert_int_equal(symlink(target, path), 0);
	assert_true(lock_card("GPU-1", "/x", a, &err) < 0);
	assert_int_equal(access(target, F_OK), -1);
}

static void test_run_dir(void **state)
{
	struct error err;
	char pid[16];
	int fd = lock_run_dir(base, &err);
	assert_true(fd >= 0);
	/* Someone answers: refused at once, by name. */
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/allotd.sock", base);
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 5), 0);
	assert_int_equal(lock_run_dir(base, &err), -EBUSY);
	snprintf(pid, sizeof(pid), "pid %d", (int)getpid());
	assert_non_null(strstr(err.text, pid));
	close(listener);
	close(fd);
	fd = lock_run_dir(base, &err);
	assert_true(fd >= 0);
	close(fd);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_card),
		test(test_unusable_directories),
		test(test_link_as_lock_file),
		test(test_run_dir),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
