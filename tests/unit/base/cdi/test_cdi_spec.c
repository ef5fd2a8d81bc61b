/* CDI specs: from what a daemon says to what engines read, and the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cdi/cdi_spec.h"

#define INJECTION \
	"{\"env\":[{\"name\":\"A\",\"value\":\"1=2\"}],\"mounts\":[{\"container_path\":\"/c\"," \
	"\"host_path\":\"/h\",\"read_only\":true}],\"device_nodes\":[{\"container_path\":" \
	"\"/dev/nvidia0\",\"host_path\":\"/dev/nvidia0\"}]}"

static int make(const char *name, const char *text, json_t **ret, struct error *err)
{
	cleanup_json json_t *injection = json_loads(text, 0, NULL);
	assert_non_null(injection);
	return cdi_spec_make(CDI_KIND, name, injection, ret, err);
}

static void test_spec(void **state)
{
	cleanup_json json_t
		*spec = NULL,
		*expected = json_loads(
			"{\"cdiVersion\":\"0.3.0\",\"kind\":\"allot.dev/"
			"gpu\",\"devices\":[{\"name\":\"web\","
			"\"containerEdits\":{\"env\":[\"A=1=2\"],\"mounts\":[{\"hostPath\":\"/h\","
			"\"containerPath\":\"/"
			"c\",\"options\":[\"ro\",\"nosuid\",\"nodev\",\"bind\"]}],"
			"\"deviceNodes\":[{\"path\":\"/dev/nvidia0\",\"permissions\":\"rw\"}]}}]}",
			0, NULL);
	struct error err = { 0 };
	assert_int_equal(make("web", INJECTION, &spec, &err), 0);
	assert_true(json_equal(spec, expected));
}

/* What is empty is left out; a name that begins with a digit is of a later version. */
static void test_small(void **state)
{
	cleanup_json json_t *spec = NULL;
	struct error err = { 0 };
	assert_int_equal(make("1a", "{\"env\":[],\"mounts\":[],\"device_nodes\":[]}", &spec, &err),
			 0);
	assert_string_equal(json_string_value(json_object_get(spec, "cdiVersion")), "0.5.0");
	json_t *device = json_array_get(json_object_get(spec, "devices"), 0);
	assert_int_equal(json_object_size(json_object_get(device, "containerEdits")), 0);
}

static void test_what_is_none(void **state)
{
	static const char *const texts[] = {
		"[]",
		"{\"env\":[{\"name\":\"A\"}],\"mounts\":[],\"device_nodes\":[]}",
		"{\"env\":[],\"mounts\":[{\"container_path\":\"/c\",\"host_path\":7}],"
		"\"device_nodes\":[]}",
		"{\"env\":[],\"mounts\":[],\"device_nodes\":[{\"container_path\":\"/dev/a\","
		"\"host_path\":\"/dev/b\"}]}",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *spec = NULL;
		struct error err = { 0 };
		assert_int_equal(make("a", texts[i], &spec, &err), -EPROTO);
		assert_null(spec);
	}
}

static void test_names(void **state)
{
	struct error err = { 0 };
	assert_int_equal(cdi_check_name("a", NULL), 0);
	assert_int_equal(cdi_check_name("1a.b-c_d", NULL), 0);
	assert_int_equal(cdi_check_name("a.", &err), -EINVAL);
	assert_int_equal(cdi_check_name("", &err), -EINVAL);
	assert_int_equal(cdi_check_name("a/b", &err), -EINVAL);
	assert_int_equal(cdi_check_name("../a", &err), -EINVAL);
}

static unsigned count_files(const char *dir)
{
	unsigned count = 0;
	DIR *d = opendir(dir);
	for (struct dirent *e; (e = readdir(d));)
		count += e->d_name[0] != '.';
	closedir(d);
	return count;
}

static void test_file(void **state)
{
	char dir[64] = "/tmp/allot-test-XXXXXX", inner[80], path[PATHS_MAX];
	cleanup_json json_t *spec = json_pack("{s:s}", "a", "b"), *read = NULL;
	struct error err = { 0 };
	struct stat st;
	assert_non_null(mkdtemp(dir));
	snprintf(inner, sizeof(inner), "%s/cdi", dir);
	assert_int_equal(cdi_spec_path(inner, "web", path, &err), 0);
	/* The directory is made, the file replaced whole, and nothing else is left. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cdi_spec_write(inner, path, spec, &err), 0);
		assert_int_equal(count_files(inner), 1);
	}
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	read = json_load_file(path, 0, NULL);
	assert_true(json_equal(read, spec));
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0); /* nothing that a file can replace */
	assert_true(cdi_spec_write(inner, path, spec, &err) < 0);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(count_files(inner), 1);
	rmdir(path);
	rmdir(inner);
	rmdir(dir);
	assert_int_equal(cdi_spec_write(inner, path, spec, &err), -ENOENT);
}

/* A file that can't be written whole: the kernel's reason is reported, and no part of the file is left. */
static void test_a_short_write(void **state)
{
	char dir[64] = "/tmp/allot-test-XXXXXX", path[PATHS_MAX];
	cleanup_json json_t *spec = json_pack("{s:s}", "a", "longer than eight bytes");
	struct error err = { 0 };
	struct rlimit before, few;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(cdi_spec_path(dir, "web", path, &err), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	few = (struct rlimit){ .rlim_cur = 8, .rlim_max = before.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	int r = cdi_spec_write(dir, path, spec, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(count_files(dir), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spec),         cmocka_unit_test(test_small),
		cmocka_unit_test(test_what_is_none), cmocka_unit_test(test_names),
		cmocka_unit_test(test_file),         cmocka_unit_test(test_a_short_write),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
