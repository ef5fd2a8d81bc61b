/* The freezer with pretended tasks: cgroups that go away under it, containers that it must leave alone. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cgroup_scene.h"
#include "daemon/tasks/freezer/freezer.h"

#define GIB (UINT64_C(1) << 30)

struct scene {
	char dir[32];
	struct config config;
	struct loop *loop;
	struct gpu_tasks *tasks;
	struct freezer *freezer;
	struct gpu_container *container;
	struct gpu_task *task;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct error err = { 0 };
	strcpy(s->dir, "/tmp/allot-test-XXXXXX");
	config_default(&s->config);
	s->config.is_freezing = true;
	if (!mkdtemp(s->dir) || loop_new(&s->loop, &err) < 0 ||
	    gpu_tasks_new(s->loop, 1, (struct gpu_tasks_events){ 0 }, &s->tasks, &err) < 0 ||
	    freezer_new(s->loop, &s->config, s->dir, s->tasks, &s->freezer, &err) < 0)
		return -1;
	s->container = calloc(1, sizeof(*s->container) + sizeof(s->container->card[0]));
	s->container->what.engine = "docker";
	strcpy(s->container->what.id, SCENE_ID);
	s->container->live = 1;
	TAILQ_INSERT_TAIL(&s->tasks->containers, s->container, link);
	s->tasks->container_count++;
	s->task = calloc(1, sizeof(*s->task) + sizeof(s->task->card[0]));
	s->task->container = s->container;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	char path[64];
	freezer_free(s->freezer);
	free(s->task);
	gpu_tasks_free(s->tasks);
	loop_free(s->loop);
	snprintf(path, sizeof(path), "%s/frozen", s->dir);
	/* Nothing is frozen: no file is left. */
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(s->dir), 0);
	free(s);
	return 0;
}

static void read_cards(struct scene *s, uint64_t free_bytes)
{
	struct freeze_card card = { .free_bytes = free_bytes };
	freezer_read(s->freezer, &card, clock_now_ns());
}

/* A cgroup of its own in the first version that can be had. */
static bool make_cgroup(struct scene *s, struct cgroup_scene *c)
{
	if (!cgroup_scene_make(c, true) && !cgroup_scene_make(c, false)) {
		print_message("no cgroups to be had here\n");
		return false;
	}
	cgroup_scene_start(c);
	s->container->what = c->container;
	return true;
}

static void test_held_until_there_is_memory(void **state)
{
	struct scene *s = *state;
	struct cgroup_scene c;
	char path[64];
	if (!make_cgroup(s, &c)) {
		skip();
		return;
	}
	freezer_task_begun(s->freezer, s->task, 1, false);
	assert_string_equal(freezer_state_name(s->container), "waiting");
	assert_int_equal(cgroup_wait_frozen(&c.cgroup, 5000), 1);
	snprintf(path, sizeof(path), "%s/frozen", s->dir);
	assert_int_equal(access(path, F_OK), 0);
	read_cards(s, GIB);
	assert_true(freezer_needs_census_soon(s->freezer) && !freezer_needs_census_now(s->freezer));
	read_cards(s, 3 * GIB);
	assert_string_equal(freezer_state_name(s->container), "starting");
	assert_int_equal(freezer_starting_bytes(s->freezer, 0), 2 * GIB);
	assert_true(cgroup_scene_runs(&c, 5000));
	assert_true(freezer_frozen_ns(s->container, clock_now_ns()) > 0);
	cgroup_scene_end(&c);
}

static void test_gone_before_it_is_frozen(void **state)
{
	struct scene *s = *state;
	strcpy(s->container->what.v2_path, "/allot-test-none/docker/" SCENE_ID);
	strcpy(s->container->what.v1_path, s->container->what.v2_path);
	freezer_task_begun(s->freezer, s->task, 1, false);
	assert_string_equal(freezer_state_name(s->container), "starting");
	struct error err = { 0 };
	assert_true(freezer_hold(s->freezer, s->container, FREEZER_PAUSED, &err) < 0);
	assert_true(err.text[0] != '\0');
	assert_string_equal(freezer_state_name(s->container), "starting");
}

static void test_gone_while_it_is_frozen(void **state)
{
	struct scene *s = *state;
	struct cgroup_scene c;
	if (!make_cgroup(s, &c)) {
		skip();
		return;
	}
	freezer_task_begun(s->freezer, s->task, 1, false);
	assert_true(s->container->is_frozen);
	cgroup_scene_end(&c);
	read_cards(s, GIB);
	assert_true(s->container->is_frozen);
	/* Its last task has ended with it. */
	s->container->live = 0;
	freezer_task_ended(s->freezer, s->task);
	assert_false(s->container->is_frozen);
	assert_string_equal(freezer_state_name(s->container), "ended");
}

static void left_alone(struct scene *s)
{
	freezer_task_begun(s->freezer, s->task, 1, false);
	assert_false(s->container->is_frozen);
	assert_string_equal(freezer_state_name(s->container), "running");
}

static void test_left_alone(void **state)
{
	struct scene *s = *state;
	struct cgroup_scene c;
	if (!make_cgroup(s, &c)) {
		skip();
		return;
	}
	s->container->has_library = true;
	left_alone(s);
	s->container->has_library = false;
	strcpy(s->config.freeze_only, "/other/* , /kubepods*");
	left_alone(s);
	strcpy(s->config.freeze_only, "*");
	strcpy(s->config.freeze_never, "none,*/docker/*");
	left_alone(s);
	strcpy(s->config.freeze_never, "none");
	/* A server of MPS, anywhere. */
	struct gpu_task server = { .name = "nvidia-cuda-mps" };
	TAILQ_INSERT_TAIL(&s->tasks->live, &server, link);
	left_alone(s);
	TAILQ_REMOVE(&s->tasks->live, &server, link);
	s->config.is_freezing = false;
	left_alone(s);
	cgroup_scene_end(&c);
}

static void test_by_hand(void **state)
{
	struct scene *s = *state;
	struct cgroup_scene c;
	struct error err = { 0 };
	if (!make_cgroup(s, &c)) {
		skip();
		return;
	}
	freezer_task_begun(s->freezer, s->task, 1, true);
	assert_string_equal(freezer_state_name(s->container), "starting");
	assert_int_equal(freezer_hold(s->freezer, s->container, FREEZER_PAUSED, &err), 0);
	assert_int_equal(freezer_hold(s->freezer, s->container, FREEZER_PAUSED, &err), 0);
	assert_string_equal(freezer_state_name(s->container), "paused");
	/* No reading thaws it. */
	read_cards(s, 100 * GIB);
	assert_int_equal(cgroup_wait_frozen(&c.cgroup, 5000), 1);
	assert_int_equal(freezer_resume(s->freezer, s->container, &err), 0);
	assert_true(cgroup_scene_runs(&c, 5000));
	assert_true(freezer_resume(s->freezer, s->container, &err) < 0);
	cgroup_scene_end(&c);
}

/* A violation that is forgiven does not end a user's pause, nor the wait for memory. */
static void test_two_reasons(void **state)
{
	struct scene *s = *state;
	struct cgroup_scene c;
	struct error err = { 0 };
	if (!make_cgroup(s, &c)) {
		skip();
		return;
	}
	assert_int_equal(freezer_hold(s->freezer, s->container, FREEZER_PAUSED, &err), 0);
	assert_int_equal(freezer_hold(s->freezer, s->container, FREEZER_VIOLATION, &err), 0);
	assert_int_equal(freezer_release(s->freezer, s->container, FREEZER_VIOLATION, &err), 0);
	assert_string_equal(freezer_state_name(s->container), "paused");
	assert_int_equal(cgroup_wait_frozen(&c.cgroup, 5000), 1);
	assert_int_equal(freezer_resume(s->freezer, s->container, &err), 0);
	assert_true(cgroup_scene_runs(&c, 5000));
	/* A user's resume ends both. */
	assert_int_equal(freezer_hold(s->freezer, s->container, FREEZER_VIOLATION, &err), 0);
	assert_int_equal(freezer_hold(s->freezer, s->container, FREEZER_PAUSED, &err), 0);
	assert_int_equal(freezer_resume(s->freezer, s->container, &err), 0);
	assert_int_equal(s->container->holds, 0);
	assert_true(cgroup_scene_runs(&c, 5000));
	freezer_task_begun(s->freezer, s->task, 1, false);
	read_cards(s, GIB);
	assert_int_equal(freezer_hold(s->freezer, s->container, FREEZER_VIOLATION, &err), 0);
	assert_int_equal(freezer_release(s->freezer, s->container, FREEZER_VIOLATION, &err), 0);
	assert_string_equal(freezer_state_name(s->container), "waiting");
	assert_int_equal(cgroup_wait_frozen(&c.cgroup, 5000), 1);
	read_cards(s, 3 * GIB);
	assert_true(cgroup_scene_runs(&c, 5000));
	cgroup_scene_end(&c);
}

/* A container without tasks, whose resume failed at first, is thawed at the next reading. */
static void test_a_failed_thaw_is_tried_again(void **state)
{
	struct scene *s = *state;
	struct gpu_container *c = s->container;
	struct error err = { 0 };
	c->is_frozen = true;
	c->cgroup.is_v2 = true;
	strcpy(c->cgroup.dir, "/dev/null"); /* the write fails with ENOTDIR */
	/* The user is told so, and sees that it does not run. */
	assert_int_equal(freezer_resume(s->freezer, c, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "stays frozen"));
	assert_string_equal(freezer_state_name(c), "paused");
	err = (struct error){ 0 };
	assert_int_equal(freezer_release(s->freezer, c, FREEZER_VIOLATION, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "stays frozen"));
	read_cards(s, GIB);
	assert_true(c->is_frozen);
	strcpy(c->cgroup.dir, s->dir); /* as after the container's end */
	read_cards(s, GIB);
	assert_false(c->is_frozen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_held_until_there_is_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_before_it_is_frozen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_it_is_frozen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_hand, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_reasons, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_failed_thaw_is_tried_again, setup, teardown),
	};
	return cmocka_run_group_tests_name("freezer", tests, NULL, NULL);
}
