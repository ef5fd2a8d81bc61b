/* Finding cgroups in texts; both freezers where this machine has them; a tree of files where it must fail. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../tasks/freezer/cgroup_scene.h"

static const char unified[] =
	"24 30 0:22 / /proc rw,relatime - proc proc rw\n"
	"35 30 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char hybrid[] =
	"30 1 0:27 / /sys/fs/cgroup ro shared:9 - tmpfs tmpfs ro,mode=755\n"
	"31 30 0:28 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw\n"
	"32 30 0:29 / /sys/fs/cgroup/systemd rw shared:11 - cgroup cgroup rw,xattr,name=systemd\n"
	"33 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:12 - cgroup cgroup rw,cpu,cpuacct\n"
	"34 30 0:32 / /sys/fs/cgroup/freezer rw shared:13 - cgroup cgroup rw,freezer\n";
static const char inside[] = "35 30 0:30 /docker/" SCENE_ID
			     " /cg\\040roups rw - cgroup cgroup rw,freezer\n";

static void test_mounts(void **state)
{
	struct cgroups c;
	cgroups_parse(unified, "0::/system.slice/allotd.service\n", &c);
	assert_string_equal(c.v2.mount, "/sys/fs/cgroup");
	assert_string_equal(c.v2.own, "/system.slice/allotd.service");
	assert_string_equal(c.v2.root, "");
	assert_string_equal(c.v1.mount, "");
	cgroups_parse(hybrid, "3:freezer:/a\n0::/b\n", &c);
	assert_string_equal(c.v2.mount, "/sys/fs/cgroup/unified");
	assert_string_equal(c.v1.mount, "/sys/fs/cgroup/freezer");
	assert_string_equal(c.v1.own, "/a");
	cgroups_parse(inside, "", &c);
	assert_string_equal(c.v1.mount, "/cg roups");
	assert_string_equal(c.v1.root, "/docker/" SCENE_ID);
	cgroups_parse("nothing\n - cgroup2\na b c - cgroup2 x y\n", "x", &c);
	assert_string_equal(c.v2.mount, "");
}

/* ---- a tree of plain files that resembles one ---- */

struct tree {
	char dir[64];
	struct cgroups cgroups;
	struct container container;
};

static void make_tree(struct tree *t)
{
	char path[512];
	memset(t, 0, sizeof(*t));
	strcpy(t->dir, "/tmp/allot-test-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	strcpy(t->cgroups.v1.mount, t->dir);
	strcpy(t->container.id, SCENE_ID);
	strcpy(t->container.v1_path, "/box");
	snprintf(path, sizeof(path), "%s/box", t->dir);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void add_file(const struct tree *t, const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/box/%s", t->dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void remove_tree(const struct tree *t)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", t->dir);
	assert_int_equal(system(command), 0);
}

/* A part of the hierarchy is mounted: its own top, cgroups below it, and one whose name only begins alike. */
static void test_a_part_is_mounted(void **state)
{
	struct tree t;
	char dir[CGROUP_DIR_MAX], box[CGROUP_DIR_MAX];
	make_tree(&t);
	strcpy(t.cgroups.v1.root, "/docker/" SCENE_ID);
	assert_int_equal(cgroups_dir(&t.cgroups.v1, "/docker/" SCENE_ID, dir), 0);
	assert_string_equal(dir, t.dir);
	assert_int_equal(cgroups_dir(&t.cgroups.v1, "/docker/" SCENE_ID "/box", dir), 0);
	snprintf(box, sizeof(box), "%s/box", t.dir);
	assert_string_equal(dir, box);
	assert_int_equal(cgroups_dir(&t.cgroups.v1, "/docker/" SCENE_ID "/other", dir), -ENOENT);
	assert_int_equal(cgroups_dir(&t.cgroups.v1, "/docker/" SCENE_ID "0", dir), -EOPNOTSUPP);
	assert_int_equal(cgroups_dir(&t.cgroups.v1, "/docker", dir), -EOPNOTSUPP);
	remove_tree(&t);
}

static void refused(const struct tree *t, int code, const char *word)
{
	struct cgroup cgroup;
	struct error err = { 0 };
	assert_int_equal(cgroup_find_freezer(&t->cgroups, &t->container, &cgroup, &err), -code);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
}

static void test_no_freezer(void **state)
{
	struct tree t;
	make_tree(&t);
	refused(&t, EOPNOTSUPP, "no freezer");
	strcpy(t.container.v1_path, "/gone");
	refused(&t, ENOENT, "can't use the freezer of container 3f4c1a0b9d8e");
	strcpy(t.container.v1_path, "/box");
	strcpy(t.cgroups.v1.own, "/box/inner");
	refused(&t, EPERM, "this daemon runs in it");
	t.cgroups.v1.mount[0] = '\0';
	refused(&t, EOPNOTSUPP, "no freezer");
	remove_tree(&t);
}

static void test_version_1_takes_its_time(void **state)
{
	struct tree t;
	struct cgroup cgroup;
	struct error err = { 0 };
	char text[16] = "";
	make_tree(&t);
	add_file(&t, "freezer.state", "THAWED\n");
	assert_int_equal(cgroup_find_freezer(&t.cgroups, &t.container, &cgroup, &err), 0);
	assert_false(cgroup.is_v2);
	assert_int_equal(cgroup_freeze(&cgroup), 0);
	assert_int_equal(cgroup_is_frozen(&cgroup), 1);
	add_file(&t, "freezer.state", "FREEZING\n");
	assert_int_equal(cgroup_is_frozen(&cgroup), 0);
	assert_int_equal(cgroup_wait_frozen(&cgroup, 5), 0);
	/* Told again. */
	assert_int_equal(cgroup_retry_freeze(&cgroup), 1);
	assert_int_equal(cgroup_thaw(&cgroup), 0);
	char path[512];
	snprintf(path, sizeof(path), "%s/box/freezer.state", t.dir);
	FILE *f = fopen(path, "r");
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_memory_equal(text, "THAWED", 6);
	remove_tree(&t);
	assert_int_equal(cgroup_freeze(&cgroup), -ENOENT);
	assert_int_equal(cgroup_is_frozen(&cgroup), -ENOENT);
}

/* ---- real ones ---- */

static void test_freeze_and_thaw(void **state)
{
	for (unsigned v = 1; v <= 2; v++) {
		struct cgroup_scene s;
		if (!cgroup_scene_make(&s, v == 2)) {
			print_message("version %u: not to be had here\n", v);
			continue;
		}
		cgroup_scene_start(&s);
		assert_true(cgroup_scene_runs(&s, 1000));
		assert_int_equal(cgroup_is_frozen(&s.cgroup), 0);
		assert_int_equal(cgroup_freeze(&s.cgroup), 0);
		assert_int_equal(cgroup_wait_frozen(&s.cgroup, 5000), 1);
		assert_false(cgroup_scene_runs(&s, 50));
		assert_int_equal(cgroup_thaw(&s.cgroup), 0);
		assert_true(cgroup_scene_runs(&s, 1000));
		cgroup_scene_end(&s);
		assert_true(cgroup_freeze(&s.cgroup) < 0);
		assert_true(cgroup_is_frozen(&s.cgroup) < 0);
	}
}

/* A process that keeps forking is frozen too, if need be by a second order. */
static void test_freeze_what_forks(void **state)
{
	for (unsigned v = 1; v <= 2; v++) {
		struct cgroup_scene s;
		if (!cgroup_scene_make(&s, v == 2)) {
			print_message("version %u: not to be had here\n", v);
			continue;
		}
		cgroup_scene_start_forking(&s);
		for (unsigned i = 0; i < 20; i++) {
			assert_int_equal(cgroup_freeze(&s.cgroup), 0);
			unsigned tries = 0;
			while (cgroup_wait_frozen(&s.cgroup, 10) == 0) {
				cgroup_retry_freeze(&s.cgroup);
				assert_true(tries++ < 1000);
			}
			assert_int_equal(cgroup_is_frozen(&s.cgroup), 1);
			assert_int_equal(cgroup_thaw(&s.cgroup), 0);
			usleep(2000);
		}
		cgroup_scene_end(&s);
	}
}

static void test_the_killed(void **state)
{
	for (unsigned v = 1; v <= 2; v++) {
		struct cgroup_scene s;
		if (!cgroup_scene_make(&s, v == 2)) {
			print_message("version %u: not to be had here\n", v);
			continue;
		}
		cgroup_scene_start(&s);
		assert_int_equal(cgroup_freeze(&s.cgroup), 0);
		assert_int_equal(cgroup_wait_frozen(&s.cgroup, 5000), 1);
		assert_false(cgroup_has_killed(&s.cgroup));
		kill(s.pid[3], SIGKILL);
		if (v == 1) {
			assert_true(cgroup_has_killed(&s.cgroup));
			assert_int_equal(waitpid(s.pid[3], NULL, WNOHANG), 0);
			assert_int_equal(cgroup_thaw(&s.cgroup), 0);
		}
		/* Version 2 lets it die as it is. */
		assert_int_equal(waitpid(s.pid[3], NULL, 0), s.pid[3]);
		s.pid[3] = 0;
		cgroup_scene_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_a_part_is_mounted),
		cmocka_unit_test(test_no_freezer),
		cmocka_unit_test(test_version_1_takes_its_time),
		cmocka_unit_test(test_freeze_and_thaw),
		cmocka_unit_test(test_freeze_what_forks),
		cmocka_unit_test(test_the_killed),
	};
	return cmocka_run_group_tests_name("cgroups", tests, NULL, NULL);
}
