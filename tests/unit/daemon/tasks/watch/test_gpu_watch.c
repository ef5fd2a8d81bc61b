/* Which processes of the driver's list count as controlled by the freezer. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/gpu/census.h"
#include "daemon/tasks/watch/gpu_watch_inside.h"

struct scene {
	struct loop *loop;
	struct gpu_watch watch;
	struct gpu_process process[CENSUS_MAX_PROCESSES];
	struct census_card card;
	struct gpu_container container; /* last, for its flexible array member */
};

static void task_ended(void *data, struct gpu_task *t)
{
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct error err = { 0 };
	if (!s || loop_new(&s->loop, &err) < 0 ||
	    gpu_tasks_new(s->loop, 1, (struct gpu_tasks_events){ task_ended, s }, &s->watch.tasks,
			  &err) < 0)
		return -1;
	s->card = (struct census_card){ .processes_known = true, .process = s->process };
	s->container.item.cards = 1;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	gpu_tasks_free(s->watch.tasks);
	loop_free(s->loop);
	free(s);
	return 0;
}

static int start_process(void)
{
	int pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void end_process(int pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void list(struct scene *s, int pid)
{
	s->process[0].pid = pid;
	s->card.process_count = 1;
}

static void test_a_process_without_a_task(void **state)
{
	struct scene *s = *state;
	int pid = start_process();
	list(s, pid);
	/* Its task could not be noted, for example because there are too many. */
	assert_false(gpu_watch_is_governed(&s->watch, &s->card));
	end_process(pid);
	assert_true(gpu_watch_is_governed(&s->watch, &s->card));
	list(s, getpid());
	assert_true(gpu_watch_is_governed(&s->watch, &s->card));
}

static void test_a_process_with_a_task(void **state)
{
	struct scene *s = *state;
	struct gpu_task *t;
	bool is_new;
	int pid = start_process();
	assert_int_equal(gpu_tasks_add(s->watch.tasks, pid, &t, &is_new), 0);
	struct gpu_container *before = t->container;
	list(s, pid);
	t->container = NULL;
	assert_false(gpu_watch_is_governed(&s->watch, &s->card));
	t->container = &s->container;
	assert_true(gpu_watch_is_governed(&s->watch, &s->card));
	t->container = before;
	end_process(pid);
}

static void test_a_list_that_is_not_certain(void **state)
{
	struct scene *s = *state;
	assert_true(gpu_watch_is_governed(&s->watch, &s->card));
	s->card.processes_known = false;
	assert_false(gpu_watch_is_governed(&s->watch, &s->card));
	/* Processes that have ended, as many as there is room for. */
	int pid = start_process();
	end_process(pid);
	s->card.processes_known = true;
	for (size_t i = 0; i < CENSUS_MAX_PROCESSES; i++)
		s->process[i].pid = pid;
	s->card.process_count = CENSUS_MAX_PROCESSES - 1;
	assert_true(gpu_watch_is_governed(&s->watch, &s->card));
	s->card.process_count = CENSUS_MAX_PROCESSES;
	assert_false(gpu_watch_is_governed(&s->watch, &s->card));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_process_without_a_task),
		TEST(test_a_process_with_a_task),
		TEST(test_a_list_that_is_not_certain),
	};
	return cmocka_run_group_tests_name("watch of GPU work", tests, NULL, NULL);
}
