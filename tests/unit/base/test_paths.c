#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "../scratch.h"

static void test_hardware(void **state)
{
	char name[PATHS_HARDWARE_MAX], other[PATHS_HARDWARE_MAX], path[128];
	struct error err;

	assert_int_equal(paths_hardware(NULL, name, NULL), 0);
	assert_string_equal(name, "gpu");
	assert_int_equal(paths_hardware("h200x2", name, NULL), 0);
	assert_string_equal(name, "sim-h200x2");
	assert_true(paths_hardware("", name, NULL) < 0);
	assert_int_equal(paths_hardware("./none.conf", name, &err), -ENOENT);
	assert_non_null(strstr(err.text, "h200"));

	/* Two files of the same name get directories of their own; odd bytes do no harm. */
	snprintf(path, sizeof(path), "%s/a b.conf", scratch);
	fclose(fopen(path, "w"));
	assert_int_equal(paths_hardware(path, name, NULL), 0);
	assert_memory_equal(name, "sim-a_b-", 8);
	snprintf(path, sizeof(path), "%s/sub", scratch);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/sub/a b.conf", scratch);
	fclose(fopen(path, "w"));
	assert_int_equal(paths_hardware(path, other, NULL), 0);
	assert_memory_equal(other, "sim-a_b-", 8);
	assert_string_not_equal(name, other);
}

static void test_resolution(void **state)
{
	char dir[PATHS_MAX], expected[64];

	unsetenv("ALLOT_RUN_DIR");
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	assert_false(paths_base_is_overridden());
	assert_int_equal(paths_private_run_dir("gpu", dir, NULL), 0);
	assert_string_equal(dir, "/run/user/7/allot/gpu");
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(paths_private_run_dir("gpu", dir, NULL), 0);
	snprintf(expected, sizeof(expected), "/tmp/allot-%u/gpu", (unsigned int)geteuid());
	assert_string_equal(dir, expected);
	setenv("ALLOT_RUN_DIR", "/x", 1);
	assert_true(paths_base_is_overridden());
	assert_int_equal(paths_private_run_dir("sim-h200", dir, NULL), 0);
	assert_string_equal(dir, "/x/sim-h200");
	setenv("ALLOT_RUN_DIR", "x", 1);
	assert_int_equal(paths_private_run_dir("gpu", dir, NULL), -EINVAL);
	unsetenv("ALLOT_RUN_DIR");
	assert_int_equal(paths_system_run_dir("gpu", dir, NULL), 0);
	assert_string_equal(dir, "/run/allot/gpu");
}

static void test_private_directory(void **state)
{
	char base[128], dir[192], link[192];
	struct error err;
	struct stat st;

	snprintf(base, sizeof(base), "%s/base", scratch);
	snprintf(dir, sizeof(dir), "%s/gpu", base);
	assert_int_equal(paths_check_private(dir, NULL), -ENOENT);
	assert_int_equal(paths_make_private(dir, NULL), 0);
	assert_int_equal(stat(base, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(paths_make_private(dir, NULL), 0);

	chmod(base, 0770);
	assert_int_equal(paths_make_private(dir, &err), -EPERM);
	assert_non_null(strstr(err.text, "chmod 700"));
	chmod(base, 0755);
	assert_int_equal(paths_make_private(dir, NULL), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(base, 12345, 12345), 0);
		assert_int_equal(paths_make_private(dir, &err), -EPERM);
		assert_non_null(strstr(err.text, "uid 12345"));
	}
	snprintf(link, sizeof(link), "%s/link", scratch);
	assert_int_equal(symlink("/tmp", link), 0);
	assert_int_equal(paths_check_private(link, NULL), -ENOTDIR);
	assert_int_equal(paths_make_private("/nonexistent/base/gpu", NULL), -ENOENT);
	/* Replies in JSON name files in it. */
	assert_int_equal(paths_make_private("/tmp/\xff/gpu", &err), -EILSEQ);
	assert_non_null(strstr(err.text, "'/tmp/?/gpu'"));
}

static void test_join(void **state)
{
	char path[8];
	struct error err;

	assert_int_equal(paths_join("/a", "bcde", path, sizeof(path), NULL), 0);
	assert_string_equal(path, "/a/bcde");
	assert_int_equal(paths_join("/a", "bcdef", path, sizeof(path), &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "/a/bcdef"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hardware, make_scratch, remove_scratch),
		cmocka_unit_test(test_resolution),
		cmocka_unit_test_setup_teardown(test_private_directory, make_scratch, remove_scratch),
		cmocka_unit_test(test_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
