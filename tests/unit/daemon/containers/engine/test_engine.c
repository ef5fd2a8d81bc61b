/* Which engines there are, and which may have a container. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/containers/engine/engine.h"

static void test_lists(void **state)
{
	struct engines e;
	struct error err = { 0 };
	assert_int_equal(engines_parse("none", &e, &err), 0);
	assert_int_equal(e.count, 0);
	assert_int_equal(engines_parse("auto", &e, &err), 0);
	assert_int_equal(e.count, 5);
	assert_int_equal(engines_parse("cri-o:/run/crio/crio.sock,docker:/x", &e, &err), 0);
	assert_int_equal(e.count, 2);
	assert_string_equal(engine_kind_name(&e.item[0]), "cri-o");
	assert_string_equal(e.item[0].path, "/run/crio/crio.sock");
	assert_string_equal(engine_kind_name(&e.item[1]), "docker");
	assert_string_equal(e.item[1].path, "/x");
}

static void refuse(const char *text, const char *word)
{
	struct engines e = { .count = 77 };
	struct error err = { 0 };
	assert_int_equal(engines_parse(text, &e, &err), -EINVAL);
	assert_int_equal(e.count, 77);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
}

static void test_wrong_lists(void **state)
{
	char path[200], many[512] = "docker:/x";
	refuse("", "must be auto, none, or a comma-separated list such as docker:/run/docker.sock");
	refuse("off", "'off'");
	refuse("/run/docker.sock", "'/run/docker.sock'");
	refuse("docker:/x,", "''");
	refuse("docker:/x,auto", "'auto'");
	refuse("lxc:/x", "'lxc:/x'");
	refuse("docker:", "an absolute path");
	refuse("docker:run/docker.sock", "'run/docker.sock'");
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memcpy(path, "docker:/", 8);
	refuse(path, "107 bytes");
	for (int i = 0; i < ENGINES_MAX; i++)
		strcat(many, ",docker:/x");
	refuse(many, "at most 16");
}

static void test_possible_owners(void **state)
{
	struct engines e;
	struct container c = { .engine = "docker" };
	assert_int_equal(engines_parse("docker:/x,containerd:/x", &e, NULL), 0);
	assert_true(engine_may_own(&e.item[0], &c));
	assert_false(engine_may_own(&e.item[1], &c));
	c.engine = "container";
	assert_true(engine_may_own(&e.item[0], &c));
	assert_true(engine_may_own(&e.item[1], &c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_wrong_lists),
		cmocka_unit_test(test_possible_owners),
	};
	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
