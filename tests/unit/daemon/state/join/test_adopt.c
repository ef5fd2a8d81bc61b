/* State files and restarts: how a new daemon uses the files of the previous one. */
#include "../../fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/state/tenant_state.h"

/* In place of the C library's: refuses to watch a process while refuses_pidfds, as a kernel that is out of watches does. */
static bool refuses_pidfds;

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	char path[64], target[64] = "";
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (refuses_pidfds && operation == EPOLL_CTL_ADD &&
	    readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, "pidfd")) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

static struct tenant *make_tenant(struct fixture *f, const char *hold)
{
	char line[256];
	snprintf(line, sizeof(line),
		 "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"hold\":%s,\"devices\":[{"
		 "\"index\":1,"
		 "\"memory_bytes\":1073741824,\"cores_pct\":30,\"cores_limit_pct\":60}]}",
		 hold);
	json_decref(fixture_ok(f, line));
	return node_find_tenant(f->node, "a");
}

static void write_state(struct tenant *t, const char *text)
{
	char path[NODE_PATH_MAX];
	tenant_path(t, "tenant.json", path);
	FILE *file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
}

static void test_terms_survive(void **state)
{
	struct fixture *f = *state;
	struct tenant_terms before = make_tenant(f, "false")->terms;
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\"}"));
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"elastic\":true}"));
	uint64_t epoch = f->node->epoch;
	fixture_stop(f);
	fixture_start(f);
	assert_true(f->node->epoch != epoch);
	struct tenant *t = node_find_tenant(f->node, "a");
	assert_non_null(t);
	assert_string_equal(t->terms.id, before.id);
	assert_int_equal(t->terms.uid, before.uid);
	assert_int_equal(t->terms.device[0].card->index, 1);
	assert_int_equal(t->terms.device[0].promise.quota_bytes, GIB);
	assert_true(t->terms.device[0].promise.limit_pct == 60);
	assert_true(t->terms.paused);
	assert_int_equal(t->terms.elastic, ELASTIC_CHOSEN_ON);
	assert_false(t->adopting);
	assert_int_equal(t->region.control->adopting, 0);
	struct client c;
	client_register(f, client_connect(t), 0, &c);
	assert_int_equal(c.reply.status, 0);
	client_close(&c);
}

/* Fields that an earlier daemon wrote for `sharing auto` are ignored. */
static void test_sharing_auto_before(void **state)
{
	struct fixture *f = *state;
	char path[NODE_PATH_MAX], programs[NODE_PATH_MAX];
	tenant_path(make_tenant(f, "false"), "tenant.json", path);
	snprintf(programs, sizeof(programs), "%s/programs.json", f->node->run_dir);
	fixture_stop(f);
	json_t *json = json_load_file(path, 0, NULL);
	json_object_set_new(json, "program", json_string("user/0/a"));
	json_object_set_new(json, "sharing_open", json_true());
	assert_int_equal(json_dump_file(json, path, 0), 0);
	assert_int_equal(json_dump_file(json, programs, 0), 0);
	json_decref(json);
	fixture_start(f);
	struct tenant *t = node_find_tenant(f->node, "a");
	assert_non_null(t);
	assert_int_equal(t->terms.sharing.way, SHARING_TIME);
	assert_int_equal(unlink(programs), 0);
}

static void hold_memory(struct client *c)
{
	c->report->slot[c->reply.slot].device[0].used_bytes = 100 * MIB;
}

/* As the library does: registers again, copies, reports that. */
static void move_over(struct fixture *f, struct tenant *t, uint64_t epoch, struct client *c)
{
	client_register(f, client_connect(t), epoch, c);
	assert_int_equal(c->reply.status, 0);
}

static void test_processes_move_over(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "true");
	struct client c, again, d;
	uint64_t epoch = f->node->epoch;
	client_register(f, client_connect(t), 0, &c);
	hold_memory(&c);
	int other = client_spawn(f, t, 0, hold_memory);
	fixture_turn(f, 50);
	fixture_stop(f);
	/* The slots' contents outlive the daemon: the process carries them over. */
	assert_int_equal(c.report->slot[c.reply.slot].device[0].used_bytes, 100 * MIB);

	fixture_start(f);
	t = node_find_tenant(f->node, "a");
	assert_true(t->adopting);
	assert_int_equal(t->region.control->adopting, 1);
	assert_int_equal(t->region.control->device[0].unslotted_bytes, 200 * MIB);
	assert_int_equal(tenant_usage(t, 0).used_bytes, 200 * MIB);
	move_over(f, t, epoch, &d);
	assert_int_equal(t->region.control->device[0].unslotted_bytes,
			 200 * MIB); /* not yet copied */
	/* Its reply was lost: it gets the same slot again. */
	move_over(f, t, epoch, &again);
	assert_int_equal(again.reply.slot, d.reply.slot);
	assert_int_equal(t->process_count, 1);
	hold_memory(&d);
	d.report->slot[d.reply.slot].migrated = 1;
	fixture_until(f, t->region.control->device[0].unslotted_bytes == 100 * MIB);
	assert_int_equal(tenant_usage(t, 0).used_bytes, 200 * MIB);
	assert_int_equal(t->region.control->adopting, 1);
	client_kill(other); /* the other one dies on the way */
	fixture_until(f, t->region.control->adopting == 0);
	assert_int_equal(tenant_usage(t, 0).used_bytes, 100 * MIB);
	client_close(&c);
	client_close(&d);
	client_close(&again);
}

static void test_a_process_that_does_not_return(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "true");
	int pid = client_spawn(f, t, 0, hold_memory);
	fixture_turn(f, 50);
	fixture_stop(f);
	fixture_start(f);
	t = node_find_tenant(f->node, "a");
	fixture_until(f, t->region.control->adopting == 0);
	/* Still counted, as long as it lives. */
	assert_int_equal(t->region.control->device[0].unslotted_bytes, 100 * MIB);
	client_kill(pid);
	fixture_until(f, t->region.control->device[0].unslotted_bytes == 0);
}

/* Counted, too, if it can't be watched at first; its end is noticed, before and after it can be. */
static void test_processes_that_can_not_be_watched(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "true");
	int first = client_spawn(f, t, 0, hold_memory), second = client_spawn(f, t, 0, hold_memory);
	fixture_turn(f, 50);
	fixture_stop(f);
	refuses_pidfds = true;
	fixture_start(f);
	t = node_find_tenant(f->node, "a");
	assert_int_equal(t->region.control->device[0].unslotted_bytes, 200 * MIB);
	client_kill(first);
	fixture_until(f, t->region.control->device[0].unslotted_bytes == 100 * MIB);
	refuses_pidfds = false;
	fixture_until(f, t->old->source != NULL);
	assert_int_equal(t->region.control->device[0].unslotted_bytes, 100 * MIB);
	client_kill(second);
	fixture_until(f, t->region.control->device[0].unslotted_bytes == 0);
}

static void test_exec_instead(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "false");
	struct client c, d;
	client_register(f, client_connect(t), 0, &c);
	hold_memory(&c);
	fixture_turn(f, 50);
	fixture_stop(f);
	fixture_start(f);
	t = node_find_tenant(f->node, "a");
	assert_int_equal(t->region.control->device[0].unslotted_bytes, 100 * MIB);
	client_register(f, client_connect(t), 0, &d); /* a new image under the same pid */
	assert_int_equal(t->region.control->device[0].unslotted_bytes, 0);
	fixture_until(f, t->region.control->adopting == 0);
	client_close(&c);
	client_close(&d);
}

static void test_dead_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "false");
	int pid = client_spawn(f, t, 0, hold_memory);
	fixture_turn(f, 50);
	fixture_stop(f);
	client_kill(pid);
	fixture_start(f);
	t = node_find_tenant(f->node, "a");
	assert_null(t->old);
	assert_int_equal(t->region.control->device[0].unslotted_bytes, 0);
	assert_int_equal(t->region.control->adopting, 0);
}

static void test_no_process_returns(void **state)
{
	struct fixture *f = *state;
	make_tenant(f, "true");
	fixture_stop(f);
	fixture_start(f);
	struct tenant *t = node_find_tenant(f->node, "a");
	assert_non_null(t);
	t->grace_end_ns = clock_now_ns();
	fixture_until(f, f->node->tenant_count == 0);
}

static void test_the_holder_returns(void **state)
{
	struct fixture *f = *state;
	char line[128];
	snprintf(line, sizeof(line), "{\"version\":1,\"op\":\"attach\",\"id\":\"%s\"}",
		 make_tenant(f, "true")->terms.id);
	fixture_stop(f);
	fixture_start(f);
	json_decref(fixture_ok(f, line));
	fixture_turn(f, 1100);
	assert_int_equal(f->node->tenant_count, 1);
	session_end(&f->session);
	assert_int_equal(f->node->tenant_count, 0);
}

static void test_garbage(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"version\":1}",
		"{\"version\":9}",
		"{\"version\":1,\"id\":\"other\"}",
		"\x00\xff",
		"{\"version\":1,\"id\":1}",
	};
	struct fixture *f = *state;
	char good[4096] = { 0 }, path[NODE_PATH_MAX];
	struct tenant *t = make_tenant(f, "false");
	tenant_path(t, "tenant.json", path);
	FILE *file = fopen(path, "r");
	size_t size = fread(good, 1, sizeof(good) - 1, file);
	fclose(file);
	assert_true(size > 100);
	struct tenant copy = *t;
	fixture_stop(f);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		copy.node = calloc(1, sizeof(*copy.node));
		snprintf(copy.node->run_dir, sizeof(copy.node->run_dir), "%s/run", f->dir);
		write_state(&copy, texts[i]);
		free(copy.node);
		fixture_start(f);
		assert_int_equal(f->node->tenant_count, 0);
		fixture_stop(f);
	}
	/* Torn at any place: refused, never half believed. */
	for (size_t cut = 0; cut < size - 1; cut += 13) {
		file = fopen(path, "w");
		fwrite(good, 1, cut, file);
		fclose(file);
		fixture_start(f);
		assert_int_equal(f->node->tenant_count, 0);
		fixture_stop(f);
	}
	file = fopen(path, "w");
	fwrite(good, 1, size, file);
	fclose(file);
	fixture_start(f);
	assert_int_equal(f->node->tenant_count, 1);
}

static void test_begun_and_never_finished(void **state)
{
	struct fixture *f = *state;
	char path[160];
	fixture_stop(f);
	snprintf(path, sizeof(path), "%s/run/tenants/0123abcd", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	fixture_start(f);
	assert_int_equal(f->node->tenant_count, 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_card_is_gone(void **state)
{
	struct fixture *f = *state;
	make_tenant(f, "false");
	fixture_stop(f);
	fake_gpu.count = 1;
	fixture_start(f);
	assert_int_equal(f->node->tenant_count, 0);
	fixture_stop(f);
	fake_gpu.count = 2;
	fixture_start(f);
	assert_int_equal(f->node->tenant_count, 1);
}

/* A file size limit stands for a full disk: the write fails half way. */
static void test_disk_full(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "false");
	struct rlimit old, tiny = { .rlim_cur = 10 };
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	tiny.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &tiny);
	fixture_refused(f, "{\"version\":1,\"op\":\"create\",\"name\":\"b\"}", EFBIG,
			"allot-control");
	fixture_refused(
		f,
		"{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"devices\":[{\"memory_bytes\":7}]}",
		EFBIG, "tenant.json");
	fixture_refused(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\"}", EFBIG, "tenant.json");
	setrlimit(RLIMIT_FSIZE, &old);
	assert_null(node_find_tenant(f->node, "b"));
	assert_int_equal(t->region.control->device[0].quota_bytes, GIB);
	assert_false(t->terms.paused);
	fixture_stop(f);
	fixture_start(f);
	t = node_find_tenant(f->node, "a");
	assert_int_equal(t->terms.device[0].promise.quota_bytes, GIB);
}

static void test_usage_is_written(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "false");
	struct client c;
	char path[NODE_PATH_MAX], text[4096] = { 0 };
	client_register(f, client_connect(t), 0, &c);
	fixture_turn(f, 50);
	c.report->slot[0].device[0].used_bytes = 12345;
	fixture_until(f, t->saved_used_bytes == 12345);
	tenant_path(t, "tenant.json", path);
	FILE *file = fopen(path, "r");
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_non_null(strstr(text, "12345"));
	client_close(&c);
}

#define test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_terms_survive),
		test(test_sharing_auto_before),
		test(test_processes_move_over),
		test(test_a_process_that_does_not_return),
		test(test_processes_that_can_not_be_watched),
		test(test_exec_instead),
		test(test_dead_meanwhile),
		test(test_no_process_returns),
		test(test_the_holder_returns),
		test(test_garbage),
		test(test_begun_and_never_finished),
		test(test_card_is_gone),
		test(test_disk_full),
		test(test_usage_is_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
