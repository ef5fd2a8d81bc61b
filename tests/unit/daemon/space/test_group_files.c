/* The files of an MPS control daemon, in a directory that its user may write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/space/group_files.h"

/* The user links the log's name to another file. That file keeps its contents. */
static void test_a_new_log_is_a_new_file(void **state)
{
	char top[] = "/tmp/allot-mps-XXXXXX", other[64], path[NODE_PATH_MAX];
	static struct node node;
	struct mps_record record = { .id = "g", .uid = geteuid() };
	struct error err = { 0 };
	struct stat st;
	assert_non_null(mkdtemp(top));
	snprintf(node.run_dir, sizeof(node.run_dir), "%s", top);
	assert_int_equal(mps_make_root_dir(&node, &err), 0);
	assert_int_equal(mps_make_dirs(&node, &record, false, &err), 0);
	snprintf(other, sizeof(other), "%s/other", top);
	int fd = open(other, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "kept", 4), 4);
	close(fd);
	mps_path(&node, "g", "/log/mps.log", path);
	assert_int_equal(link(other, path), 0);
	int log_fd = mps_open_log(&node, "g", true, &err);
	assert_true(log_fd >= 0);
	assert_int_equal(write(log_fd, "line\n", 5), 5);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 4);
	/* A restarted daemon continues the log. */
	int again_fd = mps_open_log(&node, "g", false, &err);
	assert_true(again_fd >= 0);
	assert_int_equal(lseek(again_fd, 0, SEEK_END), 5);
	close(again_fd);
	close(log_fd);
	unlink(other);
	mps_delete_files(&node, "g");
	mps_path(&node, "", "", path);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(top), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_log_is_a_new_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
