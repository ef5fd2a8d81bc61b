/* The file of stopped processes: a process that is still the same one is continued, no other. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/tasks/violation/stopped_list.h"
#include "daemon/util/procfs.h"

static int spawn_stopped(struct stopped_process *ret)
{
	int status;
	int pid = fork();
	if (pid == 0) {
		raise(SIGSTOP);
		_exit(7);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	ret->pid = pid;
	assert_int_equal(procfs_start_time(pid, &ret->start_time), 0);
	return pid;
}

static void test_the_same_process_is_continued(void **state)
{
	char dir[] = "/tmp/allot-test-XXXXXX", path[64];
	struct stopped_process list[3];
	int status;
	assert_non_null(mkdtemp(dir));
	int pid = spawn_stopped(&list[0]), other = spawn_stopped(&list[1]);
	list[1].start_time++; /* a pid that has changed hands */
	list[2] = (struct stopped_process){ .pid = 1, .start_time = 0 };
	assert_int_equal(stopped_list_write(dir, list, 3), 0);
	assert_int_equal(stopped_list_continue(dir), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(waitpid(other, &status, WNOHANG), 0);
	kill(other, SIGKILL);
	waitpid(other, &status, 0);
	/* The file is absent, and no file can be made. */
	assert_int_equal(stopped_list_continue(dir), 0);
	assert_int_equal(stopped_list_write(dir, NULL, 0), 0);
	snprintf(path, sizeof(path), "%s/stopped", dir);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(dir), 0);
}

static void test_nonsense_in_the_file(void **state)
{
	char dir[] = "/tmp/allot-test-XXXXXX", path[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/stopped", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("x\n0 0\n-1 5\n99999999999999999999 1\n\n1\n", f);
	fclose(f);
	assert_int_equal(stopped_list_continue(dir), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(stopped_list_write("/nowhere/at/all",
					    (struct stopped_process[]){ { 5, 5 } }, 1),
			 -2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_process_is_continued),
		cmocka_unit_test(test_nonsense_in_the_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
