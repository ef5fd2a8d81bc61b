/* The registry: beginning, end and use of tasks, with real processes in no container. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sleeper.h"

#include "base/clock.h"
#include "daemon/tasks/freezer/gpu_tasks.h"

struct scene {
	struct loop *loop;
	struct gpu_tasks *tasks;
	unsigned ended;
};

static void count_end(void *data, struct gpu_task *task)
{
	struct scene *s = data;
	assert_true(task->ended_ns >= task->begun_ns);
	s->ended++;
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct error err = { 0 };
	if (loop_new(&s->loop, &err) < 0 ||
	    gpu_tasks_new(s->loop, 2, (struct gpu_tasks_events){ count_end, s }, &s->tasks, &err) < 0)
		return -1;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	assert_null(gpu_tasks_free(s->tasks));
	loop_free(s->loop);
	free(s);
	return 0;
}

static void turn_until(struct scene *s, unsigned ended)
{
	uint64_t end_ns = clock_now_ns() + 5 * NSEC_PER_SEC;
	while (s->ended < ended && clock_now_ns() < end_ns)
		loop_step(s->loop, 10);
	assert_int_equal(s->ended, ended);
}

static void test_from_beginning_to_end(void **state)
{
	struct scene *s = *state;
	struct gpu_task *t, *again;
	bool is_new;
	pid_t pid = sleeper_start();
	assert_int_equal(gpu_tasks_add(s->tasks, pid, &t, &is_new), 0);
	assert_true(is_new);
	assert_int_equal(gpu_tasks_add(s->tasks, pid, &again, &is_new), 0);
	assert_false(is_new);
	assert_ptr_equal(again, t);
	assert_ptr_equal(gpu_tasks_find(s->tasks, pid), t);
	assert_true(strlen(t->name) > 0);
	gpu_task_use(t, 1, 5 * NSEC_PER_MSEC);
	gpu_task_use(t, 1, 2 * NSEC_PER_MSEC);
	t->card[1].held_bytes = t->card[1].most_bytes = 100;
	sleeper_end(pid);
	turn_until(s, 1);
	assert_null(gpu_tasks_find(s->tasks, pid));
	struct gpu_task *ended = TAILQ_FIRST(&s->tasks->ended);
	assert_int_equal(ended->card[1].used_ns, 7 * NSEC_PER_MSEC);
	assert_int_equal(ended->card[1].held_bytes, 0);
	assert_int_equal(ended->card[1].most_bytes, 100);
	assert_int_equal(gpu_tasks_add(s->tasks, pid, &t, &is_new), -ESRCH);
}

static void test_a_dead_one_is_none(void **state)
{
	struct scene *s = *state;
	struct gpu_task *t;
	bool is_new;
	pid_t pid = sleeper_start();
	kill(pid, SIGKILL);
	siginfo_t info;
	/* Dead, not yet waited for. */
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	assert_int_equal(gpu_tasks_add(s->tasks, pid, &t, &is_new), -ESRCH);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_history_is_bounded(void **state)
{
	struct scene *s = *state;
	unsigned count = GPU_TASKS_HISTORY + 10;
	for (unsigned i = 1; i <= count; i++) {
		struct gpu_task *t;
		bool is_new;
		pid_t pid = sleeper_start();
		assert_int_equal(gpu_tasks_add(s->tasks, pid, &t, &is_new), 0);
		sleeper_end(pid);
		turn_until(s, i);
	}
	assert_int_equal(s->tasks->ended_count, GPU_TASKS_HISTORY);
	assert_int_equal(s->tasks->live_count, 0);
	assert_int_equal(s->tasks->begun, count);
}

static struct gpu_container *put(struct scene *s, const char *id)
{
	struct gpu_container *c = calloc(1, sizeof(*c) + 2 * sizeof(c->card[0]));
	strcpy(c->what.id, id);
	c->what.engine = "docker";
	c->live = 1;
	TAILQ_INSERT_TAIL(&s->tasks->containers, c, link);
	s->tasks->container_count++;
	return c;
}

static void call(struct gpu_container *c, const char *namespace, const char *pod, const char *name)
{
	c->has_name = true;
	strcpy(c->name.namespace, namespace);
	strcpy(c->name.pod, pod);
	strcpy(c->name.name, name);
}

/* The matching task; NULL: none, or several. */
static struct gpu_container *find_one(struct scene *s, const char *text)
{
	struct gpu_container *found[2];
	return gpu_tasks_find_containers(s->tasks, text, found, 2) == 1 ? found[0] : NULL;
}

static size_t count(struct scene *s, const char *text)
{
	struct gpu_container *found[1];
	return gpu_tasks_find_containers(s->tasks, text, found, 1);
}

static void test_containers_by_the_beginning_of_their_id(void **state)
{
	struct scene *s = *state;
	struct gpu_container *a = put(s, "abcd1111"), *b = put(s, "abcd2222"), *c = put(s, "web");
	assert_ptr_equal(find_one(s, "abcd1"), a);
	assert_ptr_equal(find_one(s, "abcd2222"), b);
	assert_int_equal(count(s, "abcd"), 2);
	/* Too short to mean one by chance; a whole name may be short. */
	assert_int_equal(count(s, "abc"), 0);
	assert_ptr_equal(find_one(s, "web"), c);
	assert_int_equal(count(s, "none"), 0);
	/* One without GPU work is not meant, unless it is frozen. */
	b->live = 0;
	assert_ptr_equal(find_one(s, "abcd"), a);
	assert_null(find_one(s, "abcd2222"));
	b->is_frozen = true;
	assert_ptr_equal(find_one(s, "abcd2222"), b);
	b->is_frozen = false;
	assert_ptr_equal(gpu_tasks_find_id(s->tasks, "abcd2222"), b);
	assert_null(gpu_tasks_find_id(s->tasks, "abcd"));
}

static void test_containers_by_name(void **state)
{
	struct scene *s = *state;
	struct gpu_container *a = put(s, "abcd1111"), *b = put(s, "abcd2222"), *c = put(s, "eeee"),
			     *d = put(s, "ffff");
	call(a, "prod", "train-0", "main");
	call(b, "test", "train-0", "main");
	call(c, "", "", "web");
	assert_int_equal(count(s, "main"), 2);
	assert_int_equal(count(s, "train-0/main"), 2);
	assert_ptr_equal(find_one(s, "prod/train-0/main"), a);
	assert_ptr_equal(find_one(s, "test/train-0/main"), b);
	assert_ptr_equal(find_one(s, "web"), c);
	assert_int_equal(count(s, "//web"), 0);
	assert_int_equal(count(s, "/web"), 0);
	assert_int_equal(count(s, ""), 0);
	/* Another task's id equals the first one's name: a whole id wins, the beginning of one does not. */
	call(c, "", "", "abcd1111");
	assert_ptr_equal(find_one(s, "abcd1111"), a);
	call(c, "", "", "abcd1");
	assert_int_equal(count(s, "abcd1"), 2);
	/* A task whose name is unknown has an empty one. */
	assert_false(d->has_name);
	assert_ptr_equal(find_one(s, "ffff"), d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_from_beginning_to_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_dead_one_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_history_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_containers_by_the_beginning_of_their_id, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_containers_by_name, setup, teardown),
	};
	return cmocka_run_group_tests_name("gpu_tasks", tests, NULL, NULL);
}
