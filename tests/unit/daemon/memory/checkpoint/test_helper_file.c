/* A helper's file: written, read back, taken over from a helper that lives. */
#include <fcntl.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../captured_log.h"
#include "../../../scratch.h"
#include "daemon/memory/checkpoint/checkpoint_helper.h"
#include "daemon/memory/checkpoint/helper_file.h"

static struct helper_order some_order(void)
{
	return (struct helper_order){ .process_count = 2,
				      .process = { { .pid = 123, .start_time = UINT64_MAX },
						   { .pid = 4711, .start_time = 5 } },
				      .bytes = { [0] = UINT64_C(3) << 30, [63] = 1 } };
}

static char *file_path(void)
{
	static char path[96];
	snprintf(path, sizeof(path), "%s/keeper-a", scratch);
	return path;
}

static int take(void)
{
	struct error err;
	int fd = -1;
	assert_int_equal(helper_file_lock(file_path(), &fd, &err), 0);
	return fd;
}

static void test_written_and_read(void **state)
{
	struct helper_order order = some_order(), back;
	int fd = take();
	assert_int_equal(helper_file_write(fd, &order), 0);
	/* A shorter one after a longer. */
	order.process_count = 1;
	assert_int_equal(helper_file_write(fd, &order), 0);
	assert_int_equal(helper_file_read(fd, &back), 0);
	assert_int_equal(back.process_count, 1);
	assert_int_equal(back.process[0].pid, 123);
	assert_true(back.process[0].start_time == UINT64_MAX);
	assert_memory_equal(back.bytes, order.bytes, sizeof(order.bytes));
	close(fd);
}

static void test_what_is_not_understood_is_left_out(void **state)
{
	static const char text[] = "keeper x\ncard 64 1\ncard -1 2\nprocess 1 5\nprocess -7 5\n"
				   "process 9\nnonsense\n\nprocess 12 34\ncard 1 7";
	struct helper_order back;
	int fd = take();
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, sizeof(text) - 1, 0), sizeof(text) - 1);
	assert_int_equal(helper_file_read(fd, &back), 0);
	assert_int_equal(back.process_count, 1);
	assert_int_equal(back.process[0].pid, 12);
	assert_int_equal(back.bytes[1], 7);
	assert_int_equal(back.bytes[0], 0);
	close(fd);
}

/* Holds the file until it gets the order to stop; then removes it, as a helper that has finished its work does. */
static _Noreturn void hold(int ready_fd, bool removes)
{
	struct helper_order order = some_order();
	sigset_t set;
	int signal_number, fd = take();
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (helper_file_write(fd, &order) < 0 || write(ready_fd, "r", 1) != 1)
		_exit(1);
	sigwait(&set, &signal_number);
	usleep(50000);
	if (removes)
		unlink(file_path());
	_exit(0);
}

static void test_taken_over(void **state)
{
	for (int removes = 0; removes < 2; removes++) {
		struct helper_order back;
		int fds[2], status;
		char c;
		assert_int_equal(pipe(fds), 0);
		pid_t pid = fork();
		if (pid == 0)
			hold(fds[1], removes);
		assert_int_equal(read(fds[0], &c, 1), 1);
		int fd = take();
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		assert_int_equal(helper_file_read(fd, &back), 0);
		assert_int_equal(back.process_count, removes ? 0 : 2);
		/* Other programs find the locked contents there. */
		assert_int_equal(access(file_path(), F_OK), 0);
		close(fd);
		close(fds[0]);
		close(fds[1]);
	}
}

static void test_no_place_for_it(void **state)
{
	struct error err;
	int fd;
	assert_int_equal(helper_file_lock("/proc/none/keeper-a", &fd, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/proc/none/keeper-a"));
}

static void test_a_helper_that_cannot_recover(void **state)
{
	char name[] = "allotd", option[] = HELPER_OPTION, cuda[] = "libcuda.so.1",
	     nvml[] = "libnvidia-ml.so.1", path[] = "/proc/none/keeper-a",
	     recover[] = HELPER_RECOVER;
	char *argv[] = { name, option, cuda, nvml, path, recover, NULL };
	struct captured_log log = captured_log_begin();
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(checkpoint_helper_main(6, argv));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(captured_log_end(&log, "stay stopped: their list can't be taken over: "
						"/proc/none/keeper-a: "),
			 1);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_and_read),
		cmocka_unit_test(test_what_is_not_understood_is_left_out),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_no_place_for_it),
		cmocka_unit_test(test_a_helper_that_cannot_recover),
	};
	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
