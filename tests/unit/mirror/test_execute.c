/* Making a mirror where an empty directory is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../scratch.h"
#include "mirror/execute.h"

static char place[96], inside[128];

static int set_up(void **state)
{
	int r = make_scratch(state);
	snprintf(place, sizeof(place), "%s/mirror", scratch);
	snprintf(inside, sizeof(inside), "%s/versions", place);
	return r < 0 ? r : mkdir(place, 0755);
}

static int execute(const char *from, struct error *err)
{
	char to[] = "lib64/libcuda.so.1", path[128];
	snprintf(path, sizeof(path), "%s", from);
	struct mirror_action action = { .kind = MIRROR_FILE, .to = to, .from = path };
	const struct mirror_plan plan = { .action = &action, .count = 1, .driver = "1" };
	bool is_new;
	return mirror_execute(&plan, place, &is_new, err);
}

static void test_an_empty_directory_becomes_the_mirror(void **state)
{
	struct error err;
	assert_int_equal(execute("/proc/self/exe", &err), 0);
	assert_int_equal(access(inside, F_OK), 0);
}

static void test_a_failure_keeps_the_empty_directory(void **state)
{
	struct error err;
	assert_int_equal(execute("/nonexistent/libcuda.so.1", &err), -ENOENT);
	assert_int_equal(rmdir(place), 0);
	/* Nothing else is left. */
	assert_int_equal(rmdir(scratch), 0);
	assert_int_equal(mkdir(scratch, 0700), 0);
}

static void test_other_contents_are_kept(void **state)
{
	struct error err;
	snprintf(inside, sizeof(inside), "%s/other", place);
	close(open(inside, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(execute("/proc/self/exe", &err), -EEXIST);
	assert_int_equal(unlink(inside), 0);
}

/* Refused before anything is made, although the file to copy is not there. */
static void test_places_that_cannot_be_replaced(void **state)
{
	struct error err;
	char directory[sizeof(place)];
	strcpy(directory, place);
	strcat(place, "/.");
	assert_int_equal(execute("/nonexistent/libcuda.so.1", &err), -EINVAL);
	strcpy(place, directory);
	if (mount("none", place, "tmpfs", 0, NULL) < 0) {
		print_message("mount: %s\n", strerror(errno));
		skip();
	}
	int r = execute("/nonexistent/libcuda.so.1", &err);
	assert_int_equal(umount(place), 0);
	assert_int_equal(r, -EBUSY);
	assert_non_null(strstr(err.text, "is a mount point"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, remove_scratch)
	const struct CMUnitTest tests[] = {
		TEST(test_an_empty_directory_becomes_the_mirror),
		TEST(test_a_failure_keeps_the_empty_directory),
		TEST(test_other_contents_are_kept),
		TEST(test_places_that_cannot_be_replaced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
