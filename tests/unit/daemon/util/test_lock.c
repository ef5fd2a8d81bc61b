#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/util/lock.h"
#include "../../skip_unless_root.h"

static char base[64], paths[LOCK_DIRS][80];
static const char *dirs[LOCK_DIRS] = { paths[0], paths[1], paths[2] };

static int setup(void **state)
{
	strcpy(base, "/tmp/allot-lock-XXXXXX");
	if (!mkdtemp(base) || chmod(base, 0755) < 0)
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

/* A fork whose child becomes the child of the caller's parent, because the caller ends first. */
static long fork_sibling(unsigned long flags)
{
	return syscall(SYS_clone, flags | CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0);
}

static void reap_all(void)
{
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* 0 if `what` returns so in a process of a user other than root. Tests by a user are skipped unless root runs them. */
static int as_user(int (*what)(void))
{
	int status;
	skip_unless_root();
	pid_t pid = fork();
	if (pid == 0)
		_exit(setgid(65534) < 0 || setuid(65534) < 0 ? 125 : -what());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static int lock_as_user(void)
{
	int fds[LOCK_DIRS];
	struct error err;
	int r = lock_card("GPU-1", "/user", fds, &err);
	return r < 0 ? r : fds[0] >= 0 || fds[2] < 0 ? -ENOTRECOVERABLE : 0;
}

static void make_shared_dirs(void)
{
	for (unsigned i = 1; i < LOCK_DIRS; i++)
		assert_int_equal(mkdir(paths[i], 01777) | chmod(paths[i], 01777), 0);
}

static void test_card(void **state)
{
	int a[LOCK_DIRS], b[LOCK_DIRS];
	struct error err;
	char pid[32];
	struct stat st;
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), 0);
	assert_true((a[0] >= 0) == (geteuid() == 0) && a[1] >= 0 && a[2] >= 0);
	assert_int_equal(stat(paths[1], &st), 0);
	assert_int_equal(st.st_mode & 07777, 01777);
	assert_int_equal(lock_card("GPU-1", "/y", b, &err), -EBUSY);
	if (geteuid() == 0) {
		snprintf(pid, sizeof(pid), "pid %d (/x)", (int)getpid());
		assert_non_null(strstr(err.text, pid));
		assert_int_equal(stat(paths[0], &st), 0);
		assert_int_equal(st.st_mode & 07777, 0755);
	}
	assert_int_equal(lock_card("GPU-2", "/y", b, &err), 0);
	lock_release(b);
	lock_release(a);
	assert_int_equal(lock_card("GPU-1", "/y", b, &err), 0);
	lock_release(b);
}

static void test_users_meet_root(void **state)
{
	int a[LOCK_DIRS];
	struct error err;
	make_shared_dirs();
	assert_int_equal(as_user(lock_as_user), 0);
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), 0);
	assert_int_equal(as_user(lock_as_user), -EBUSY);
	lock_release(a);
	assert_int_equal(as_user(lock_as_user), 0);
}

static int flock_all(void)
{
	char path[256];
	for (unsigned i = 0; i < LOCK_DIRS; i++) {
		snprintf(path, sizeof(path), "%s/GPU-1.lock", paths[i]);
		int fd = open(path, O_RDONLY | O_CREAT, 0666);
		if (i == LOCK_DIR_OF_ROOT ? fd >= 0 || errno != EACCES
					  : fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			return -1;
	}
	return 0;
}

/* The descriptors are left open by the child that the user's process forked, until the pipe closes. */
static int hold_pipe[2];

static int flock_all_and_stay(void)
{
	char byte;
	int r = flock_all();
	if (r < 0 || fork_sibling(0) > 0)
		return r;
	close(hold_pipe[1]);
	_exit(read(hold_pipe[0], &byte, 1) != 0);
}

static void test_users_do_not_keep_root_out(void **state)
{
	int a[LOCK_DIRS];
	struct error err;
	make_shared_dirs();
	skip_unless_root();
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), 0);
	lock_release(a);
	assert_int_equal(pipe(hold_pipe), 0);
	assert_int_equal(as_user(flock_all_and_stay), 0);
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), 1);
	assert_true(a[LOCK_DIR_OF_ROOT] >= 0);
	assert_non_null(strstr(err.text, paths[2]));
	lock_release(a);
	close(hold_pipe[1]);
	close(hold_pipe[0]);
	reap_all();
}

static void test_unusable_directories(void **state)
{
	int a[LOCK_DIRS];
	struct error err;
	char other[160];
	make_shared_dirs();
	/* A link may lead anywhere; one good directory is enough, none is not. Root has its own. */
	assert_int_equal(rmdir(paths[1]) | symlink("/tmp", paths[1]), 0);
	assert_int_equal(as_user(lock_as_user), 0);
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), 0);
	assert_true(a[0] >= 0 && a[1] == -1 && a[2] >= 0);
	lock_release(a);
	snprintf(other, sizeof(other), "%s.moved", paths[2]);
	assert_int_equal(rename(paths[2], other) | symlink(other, paths[2]), 0);
	assert_int_equal(as_user(lock_as_user), -EACCES);
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), 0);
	lock_release(a);
}

static void test_link_as_lock_file(void **state)
{
	int a[LOCK_DIRS];
	struct error err;
	char path[160], target[160];
	make_shared_dirs();
	snprintf(path, sizeof(path), "%s/GPU-1.lock", paths[1]);
	snprintf(target, sizeof(target), "%s/victim", paths[2]);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(as_user(lock_as_user), -ELOOP);
	assert_int_equal(lock_card("GPU-1", "/x", a, &err), 1);
	lock_release(a);
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

static int listen_in_base(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/allotd.sock", base);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -1 : listen(fd, 1000);
}

/* A killed daemon's socket and lock are open until all of it has gone: here until another lets its table go. */
static void test_a_daemon_that_was_killed_is_waited_for(void **state)
{
	struct error err;
	siginfo_t info;
	pid_t pid = fork();
	if (pid == 0) {
		if (lock_run_dir(base, &err) < 0 || listen_in_base() < 0)
			_exit(1);
		if (fork_sibling(CLONE_FILES) == 0)
			usleep(300000);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, 0);
	int fd = lock_run_dir(base, &err);
	assert_true(fd >= 0);
	close(fd);
	reap_all();
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_card),
		test(test_users_meet_root),
		test(test_users_do_not_keep_root_out),
		test(test_unusable_directories),
		test(test_link_as_lock_file),
		test(test_run_dir),
		test(test_a_daemon_that_was_killed_is_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
