/* Which cgroup a process's memory is charged to, and how much more it may use: trees of files that resemble one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/util/memory_cgroup.h"

struct tree {
	char dir[64];
	struct cgroups cgroups;
};

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));
	char path[128];

	strcpy(t->dir, "/tmp/allot-test-XXXXXX");
	if (!t || !mkdtemp(t->dir))
		return -1;
	snprintf(path, sizeof(path), "%s/a", t->dir);
	mkdir(path, 0700);
	strcat(path, "/b");
	mkdir(path, 0700);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct tree *t = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", t->dir);
	int r = system(command);
	free(t);
	return r;
}

static void say(const struct tree *t, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", t->dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static uint64_t room(struct tree *t, const char *cgroups)
{
	struct memory_cgroup cgroup;

	assert_int_equal(memory_cgroup_find(&t->cgroups, cgroups, &cgroup), 0);
	return memory_cgroup_free_bytes(&cgroup);
}

static void test_version_2(void **state)
{
	struct tree *t = *state;
	static const char self[] = "0::/a/b\n";

	strcpy(t->cgroups.v2.mount, t->dir);
	assert_true(room(t, self) == UINT64_MAX);
	say(t, "a/b/memory.max", "max\n");
	assert_true(room(t, self) == UINT64_MAX);
	say(t, "a/b/memory.max", "1000000\n");
	say(t, "a/b/memory.current", "400000\n");
	assert_int_equal(room(t, self), 600000);
	/* The kernel drops files that were not used lately when it needs room. */
	say(t, "a/b/memory.stat", "anon 100\nfile 90000\ninactive_anon 7\ninactive_file 50000\n");
	assert_int_equal(room(t, self), 650000);
	/* The least room of all above counts. */
	say(t, "a/memory.max", "500000\n");
	say(t, "a/memory.current", "450000\n");
	assert_int_equal(room(t, self), 50000);
	say(t, "a/memory.current", "550000\n");
	assert_int_equal(room(t, self), 0);
	/* The root cgroup has none, whatever files lie there. */
	say(t, "a/memory.max", "max\n");
	say(t, "memory.max", "1\n");
	assert_int_equal(room(t, self), 650000);
}

static void test_version_1(void **state)
{
	struct tree *t = *state;
	static const char self[] = "4:cpu:/elsewhere\n3:memory:/a/b\n0::/x\n";

	strcpy(t->cgroups.v1_memory.mount, t->dir);
	strcpy(t->cgroups.v2.mount, "/nowhere");
	say(t, "a/b/memory.limit_in_bytes", "9223372036854771712\n");
	say(t, "a/b/memory.usage_in_bytes", "4096\n");
	assert_true(room(t, self) > UINT64_C(1) << 60);
	say(t, "a/b/memory.limit_in_bytes", "10000\n");
	say(t, "a/b/memory.stat", "inactive_file 1\ntotal_inactive_file 4000\n");
	assert_int_equal(room(t, self), 9904);
}

/* Where version 1 is mounted without the memory controller, version 2 has it. */
static void test_hybrid(void **state)
{
	struct tree *t = *state;
	struct memory_cgroup cgroup;

	strcpy(t->cgroups.v2.mount, t->dir);
	assert_int_equal(memory_cgroup_find(&t->cgroups, "3:freezer:/f\n0::/a\n", &cgroup), 0);
	assert_true(cgroup.is_v2);
	assert_int_equal(memory_cgroup_find(&t->cgroups, "0::/gone\n", &cgroup), -ENOENT);
	assert_int_equal(memory_cgroup_find(&t->cgroups, "no cgroups\n", &cgroup), -EOPNOTSUPP);
	t->cgroups.v2.mount[0] = '\0';
	assert_int_equal(memory_cgroup_find(&t->cgroups, "0::/a\n", &cgroup), -EOPNOTSUPP);
	/* Seen from a container, only cgroups below its own have a directory. */
	strcpy(t->cgroups.v2.mount, t->dir);
	strcpy(t->cgroups.v2.root, "/docker/1");
	assert_int_equal(memory_cgroup_find(&t->cgroups, "0::/docker/1/a\n", &cgroup), 0);
	assert_int_equal(memory_cgroup_find(&t->cgroups, "0::/docker/2/a\n", &cgroup), -EOPNOTSUPP);
}

static void test_join(void **state)
{
	struct tree *t = *state;
	struct memory_cgroup cgroup;
	char path[256], text[8] = { 0 };

	strcpy(t->cgroups.v2.mount, t->dir);
	assert_int_equal(memory_cgroup_find(&t->cgroups, "0::/a/b\n", &cgroup), 0);
	assert_int_equal(memory_cgroup_join(&cgroup), -ENOENT);
	say(t, "a/b/cgroup.procs", "");
	assert_int_equal(memory_cgroup_join(&cgroup), 0);
	snprintf(path, sizeof(path), "%s/a/b/cgroup.procs", t->dir);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "0");
}

static void test_own_process(void **state)
{
	struct memory_cgroup cgroup;

	if (memory_cgroup_of(getpid(), &cgroup) < 0) {
		print_message("no memory cgroups here\n");
		skip();
	}
	assert_true(memory_cgroup_free_bytes(&cgroup) > 0);
	assert_true(memory_cgroup_of(-1, &cgroup) < 0);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_version_2), test(test_version_1),   test(test_hybrid),
		test(test_join),      test(test_own_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
