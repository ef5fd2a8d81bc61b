/* The records that one daemon's registry leaves for the next: with real processes, in simulated containers. */
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
#include "daemon/tasks/freezer/gpu_records.h"

#define HALF_LIFE_NS (600 * NSEC_PER_SEC)
#define CARDS 2

static struct loop *loop;

static struct gpu_tasks *make_tasks(unsigned cards)
{
	struct gpu_tasks *tasks;
	struct error err = { 0 };
	assert_int_equal(gpu_tasks_new(loop, cards, (struct gpu_tasks_events){ 0 }, &tasks, &err),
			 0);
	return tasks;
}

static int setup(void **state)
{
	return loop_new(&loop, NULL);
}

static int teardown(void **state)
{
	loop_free(loop);
	return 0;
}

static struct gpu_container *put_container(struct gpu_tasks *tasks, const char *id, double use_s)
{
	struct gpu_container *c = calloc(1, sizeof(*c) + CARDS * sizeof(c->card[0]));
	strcpy(c->what.id, id);
	c->what.engine = "docker";
	strcpy(c->what.v2_path, "/docker/x");
	c->fade = (struct fade){ use_s * (double)NSEC_PER_SEC, clock_now_ns() };
	c->card[1].used_ns = 7 * NSEC_PER_SEC;
	c->faded_ns = 7 * NSEC_PER_SEC;
	c->frozen_ns = 3 * NSEC_PER_SEC;
	gpu_tasks_put_container(tasks, c);
	return c;
}

static struct gpu_task *add(struct gpu_tasks *tasks, pid_t pid)
{
	struct gpu_task *t;
	bool is_new;
	assert_int_equal(gpu_tasks_add(tasks, pid, &t, &is_new), 0);
	return t;
}

static json_t *write_down(const struct gpu_tasks *tasks)
{
	json_t *json = json_object();
	gpu_records_to_json(tasks, HALF_LIFE_NS, clock_now_ns(), json);
	return json;
}

static const struct gpu_records_cards same = { CARDS, { 0, 1 }, CARDS };

static struct gpu_records_when after(uint64_t passed_ns)
{
	return (struct gpu_records_when){ passed_ns, true, clock_now_ns(), HALF_LIFE_NS };
}

static struct gpu_records *read_back(const json_t *json, const struct gpu_records_cards *cards,
				     struct gpu_records_when when)
{
	struct gpu_records *records;
	struct error err = { 0 };
	if (gpu_records_from_json(json, cards, &when, &records, &err) < 0)
		fail_msg("%s", err.text);
	return records;
}

static void assert_near(double got, double wanted, double slack)
{
	if (got < wanted - slack || got > wanted + slack)
		fail_msg("%g, not %g", got, wanted);
}

static void test_containers(void **state)
{
	struct gpu_tasks *before = make_tasks(CARDS), *now = make_tasks(CARDS);
	struct gpu_container *c = put_container(before, "aaaa", 40);
	c->has_name = true;
	strcpy(c->name.name, "tr\xc3\xa4iner");
	strcpy(c->name.pod, "pod-0");
	put_container(before, "bbbb", 10);
	cleanup_json json_t *json = write_down(before);
	gpu_tasks_free(before);
	struct gpu_records *records = read_back(json, &same, after(HALF_LIFE_NS));
	gpu_records_take(records, now);
	assert_null(gpu_records_free(records));
	assert_int_equal(now->container_count, 2);
	c = gpu_tasks_find_id(now, "aaaa");
	assert_near(fade_use_ns(&c->fade, clock_now_ns(), HALF_LIFE_NS) / 1e9, 20, 0.1);
	assert_int_equal(c->card[1].used_ns, 7 * NSEC_PER_SEC);
	/* Nothing of that fades a second time. */
	assert_int_equal(c->faded_ns, 7 * NSEC_PER_SEC);
	assert_int_equal(c->frozen_ns, 3 * NSEC_PER_SEC);
	assert_string_equal(c->what.engine, "docker");
	assert_string_equal(c->what.v2_path, "/docker/x");
	assert_true(c->has_name && !c->is_name_current);
	assert_string_equal(c->name.name, "tr\xc3\xa4iner");
	assert_string_equal(c->name.pod, "pod-0");
	c = gpu_tasks_find_id(now, "bbbb");
	assert_false(c->has_name);
	assert_near(fade_use_ns(&c->fade, clock_now_ns(), HALF_LIFE_NS) / 1e9, 5, 0.1);
	gpu_tasks_free(now);
}

static void test_tasks(void **state)
{
	struct gpu_tasks *before = make_tasks(CARDS), *now = make_tasks(CARDS);
	pid_t lives = sleeper_start(), goes = sleeper_start(), ended = sleeper_start();
	struct gpu_task *t = add(before, lives);
	double begun_s = t->begun_s;
	gpu_task_use(t, 1, 5 * NSEC_PER_SEC);
	t->begun_ns -= 100 * NSEC_PER_SEC;
	t = add(before, goes);
	t->begun_ns -= 50 * NSEC_PER_SEC;
	strcpy(t->tenant, "a");
	add(before, ended);
	sleeper_end(ended);
	while (before->ended_count == 0)
		loop_step(loop, 10);
	cleanup_json json_t *json = write_down(before);
	gpu_tasks_free(before);
	sleeper_end(goes);
	struct gpu_records *records = read_back(json, &same, after(20 * NSEC_PER_SEC));
	gpu_records_take(records, now);
	assert_int_equal(now->ended_count, 1);
	t = TAILQ_FIRST(&records->running);
	assert_int_equal(t->pid, lives);
	gpu_records_take_task(records, t, now, add(now, lives));
	t = TAILQ_FIRST(&records->running);
	assert_int_equal(t->pid, goes);
	gpu_records_take_task(records, t, now, NULL);
	assert_true(TAILQ_EMPTY(&records->running));
	gpu_records_free(records);

	t = gpu_tasks_find(now, lives);
	assert_int_equal(t->card[1].used_ns, 5 * NSEC_PER_SEC);
	assert_near(t->begun_s, begun_s, 1e-5);
	assert_near((double)(clock_now_ns() - t->begun_ns) / 1e9, 120, 1);
	/* The time without a daemon is not counted as use. */
	assert_true(clock_now_ns() - t->card[0].seen_ns < NSEC_PER_SEC);
	t = TAILQ_LAST(&now->ended, gpu_task_list);
	assert_int_equal(t->pid, goes);
	assert_string_equal(t->tenant, "a");
	assert_near((double)(t->ended_ns - t->begun_ns) / 1e9, 50, 1);
	gpu_tasks_free(now);
	sleeper_end(lives);
}

static void test_after_a_reboot_pids_are_others(void **state)
{
	struct gpu_tasks *before = make_tasks(CARDS);
	pid_t pid = sleeper_start();
	add(before, pid);
	cleanup_json json_t *json = write_down(before);
	gpu_tasks_free(before);
	struct gpu_records_when when = after(0);
	when.is_same_boot = false;
	struct gpu_records *records = read_back(json, &same, when);
	assert_true(TAILQ_EMPTY(&records->running));
	assert_false(TAILQ_EMPTY(&records->ended));
	gpu_records_free(records);
	sleeper_end(pid);
}

/* Cards that have changed places; one that is missing. */
static void test_cards_by_uuid(void **state)
{
	struct gpu_tasks *before = make_tasks(CARDS);
	struct gpu_container *c = put_container(before, "aaaa", 1);
	c->card[0].used_ns = NSEC_PER_SEC;
	cleanup_json json_t *json = write_down(before);
	gpu_tasks_free(before);
	static const struct gpu_records_cards changed = { CARDS, { -1, 0 }, 1 };
	struct gpu_records *records = read_back(json, &changed, after(0));
	c = TAILQ_FIRST(&records->containers);
	assert_int_equal(c->card[0].used_ns, 7 * NSEC_PER_SEC);
	assert_int_equal(c->faded_ns, 7 * NSEC_PER_SEC);
	gpu_records_free(records);
}

static void refuse(const char *text)
{
	json_error_t where;
	struct gpu_records *records = NULL;
	struct gpu_records_when when = after(0);
	struct error err = { 0 };
	cleanup_json json_t *json = json_loads(text, 0, &where);
	assert_non_null(json);
	assert_int_equal(gpu_records_from_json(json, &same, &when, &records, &err), -EINVAL);
	assert_null(records);
	assert_true(err.text[0]);
}

#define CONTAINER(id, engine, use, more) \
	"{\"containers\":[{\"id\":\"" id "\",\"engine\":\"" engine "\",\"faded_use_s\":" use \
	",\"frozen_ns\":0" more "}]}"
#define TASK(pid, name, more) \
	"{\"tasks\":[{\"pid\":" pid \
	",\"start_time\":1,\"lasted_ns\":1,\"begun_s\":1,\"ended\":true," \
	"\"name\":\"" name "\",\"tenant\":\"\",\"container\":\"\"" more "}]}"
#define NO_CARDS ",\"devices\":[]"

static void test_what_is_wrong(void **state)
{
	json_error_t where;
	struct gpu_records_when when = after(0);
	struct gpu_records *records;
	/* These are valid, so that later ones are refused for their own mistake. */
	static const char *const right[] = { CONTAINER("a", "docker", "1", NO_CARDS),
					     TASK("1", "x", NO_CARDS), "{}" };
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		cleanup_json json_t *json = json_loads(right[i], 0, &where);
		assert_int_equal(gpu_records_from_json(json, &same, &when, &records, NULL), 0);
		gpu_records_free(records);
	}
	refuse("{\"containers\":1}");
	refuse("{\"tasks\":{}}");
	refuse("{\"containers\":[null]}");
	refuse(CONTAINER("", "docker", "1", NO_CARDS));
	refuse(CONTAINER("a", "lxc", "1", NO_CARDS));
	refuse(CONTAINER("a", "docker", "-1", NO_CARDS));
	refuse(CONTAINER("a", "docker", "1e300", NO_CARDS));
	refuse(CONTAINER("a", "docker", "1", ""));
	refuse(CONTAINER("a\\u0007", "docker", "1", NO_CARDS));
	refuse(CONTAINER("a", "docker", "1", NO_CARDS ",\"called\":{\"name\":7}"));
	refuse(CONTAINER("a", "docker", "1",
			 ",\"devices\":[{\"index\":2,\"used_ns\":1,"
			 "\"memory_most_bytes\":1}]"));
	refuse(CONTAINER("a", "docker", "1",
			 ",\"devices\":[{\"index\":1,\"used_ns\":-1,"
			 "\"memory_most_bytes\":1}]"));
	refuse(TASK("0", "x", NO_CARDS));
	refuse(TASK("1", "a name that is far too long for one", NO_CARDS));
	refuse(TASK("1", "x", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_after_a_reboot_pids_are_others),
		cmocka_unit_test(test_cards_by_uuid),
		cmocka_unit_test(test_what_is_wrong),
	};
	return cmocka_run_group_tests_name("gpu_records", tests, setup, teardown);
}
