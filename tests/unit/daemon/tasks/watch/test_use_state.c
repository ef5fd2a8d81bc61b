/* GPU time used, over the daemon's end and over its death. */
#include "../../fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../captured_log.h"
#include "base/clock.h"
#include "daemon/state/use.h"
#include "daemon/tasks/watch/use_state.h"

#define MINUTE_NS (60 * NSEC_PER_SEC)

static struct tenant *make_tenant(struct fixture *f, const char *name)
{
	char line[256];
	snprintf(line, sizeof(line),
		 "{\"version\":1,\"op\":\"create\",\"name\":\"%s\",\"devices\":[{\"index\":1,"
		 "\"memory_bytes\":1073741824}]}",
		 name);
	json_decref(fixture_ok(f, line));
	return node_find_tenant(f->node, name);
}

static void find_path(const struct fixture *f, const char *leaf, char path[NODE_PATH_MAX])
{
	snprintf(path, NODE_PATH_MAX, "%s/run/%s", f->dir, leaf);
}

static json_t *read_file(const struct fixture *f)
{
	char path[NODE_PATH_MAX];
	find_path(f, "use.json", path);
	return json_load_file(path, 0, NULL);
}

static void write_file(const struct fixture *f, const json_t *json)
{
	char path[NODE_PATH_MAX];
	find_path(f, "use.json", path);
	assert_int_equal(json_dump_file(json, path, 0), 0);
}

static double use_of(struct fixture *f, const char *name)
{
	struct tenant *t = node_find_tenant(f->node, name);
	assert_non_null(t);
	return use_ns(t, clock_now_ns()) / (double)NSEC_PER_SEC;
}

static void assert_near(double got, double wanted)
{
	if (got < wanted - 0.5 || got > wanted + 0.001)
		fail_msg("%g, not %g", got, wanted);
}

/* Present and former tenants: `b` has ended before. */
static void make_both(struct fixture *f)
{
	use_restore(make_tenant(f, "a"), 30 * (double)NSEC_PER_SEC);
	use_restore(make_tenant(f, "b"), 20 * (double)NSEC_PER_SEC);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"b\"}"));
}

static void test_over_an_end(void **state)
{
	struct fixture *f = *state;
	make_both(f);
	fixture_stop(f);
	fixture_start(f);
	assert_near(use_of(f, "a"), 30);
	make_tenant(f, "b");
	assert_near(use_of(f, "b"), 20);
	/* Taken, so it is there once. */
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"b\"}"));
	make_tenant(f, "b");
	assert_near(use_of(f, "b"), 20);
}

/* A tenant with the name of one that ended: one use is stored for the name, the larger. */
static void test_a_name_is_remembered_once(void **state)
{
	struct fixture *f = *state;
	make_both(f);
	struct tenant *a = node_find_tenant(f->node, "a");
	text_index_remove(&f->node->tenant_names, &a->by_name);
	strcpy(a->terms.name, "b");
	text_index_add(&f->node->tenant_names, &a->by_name, a->terms.name, a);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"b\"}"));
	make_tenant(f, "b");
	assert_near(use_of(f, "b"), 30);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"b\"}"));
	fixture_stop(f);
	json_t *json = read_file(f), *tenants = json_object_get(json, "tenants");
	assert_int_equal(json_array_size(tenants), 1);
	/* An earlier daemon may have written it twice. */
	json_array_append_new(tenants, json_deep_copy(json_array_get(tenants, 0)));
	json_object_set_new(json_array_get(tenants, 0), "use_s", json_real(3));
	write_file(f, json);
	json_decref(json);
	fixture_start(f);
	fixture_stop(f);
	json = read_file(f);
	assert_int_equal(json_array_size(json_object_get(json, "tenants")), 1);
	json_decref(json);
	fixture_start(f);
	make_tenant(f, "b");
	assert_near(use_of(f, "b"), 30);
}

/* A daemon that was killed leaves the state that was written soon after a change. */
static void test_over_a_death(void **state)
{
	struct fixture *f = *state;
	make_both(f);
	assert_null(read_file(f));
	node_save_use_soon(f->node);
	uint64_t end_ns = clock_now_ns() + 10 * NSEC_PER_SEC;
	json_t *killed = NULL;
	while (!(killed = read_file(f)) && clock_now_ns() < end_ns)
		fixture_turn(f, 20);
	assert_non_null(killed);
	/* Of a tenant that lives on, this file has the use, not its own. */
	json_t *a = json_array_get(json_object_get(killed, "tenants"), 0);
	assert_string_equal(json_string_value(json_object_get(a, "name")), "a");
	assert_near(json_real_value(json_object_get(a, "use_s")), 30);
	json_object_set_new(a, "use_s", json_real(12));
	fixture_stop(f);
	write_file(f, killed);
	json_decref(killed);
	fixture_start(f);
	make_tenant(f, "b");
	assert_near(use_of(f, "a"), 12);
	assert_near(use_of(f, "b"), 20);
}

/* Half a half-life without a daemon, by the clock of this boot, whatever the wall clock shows. */
static void test_it_fades_meanwhile(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(f->node->config.use_half_life_ns, 10 * MINUTE_NS);
	make_both(f);
	fixture_stop(f);
	json_t *json = read_file(f);
	json_t *written = json_object_get(json, "written");
	json_int_t boot_ns = json_integer_value(json_object_get(written, "boot_ns"));
	json_object_set_new(written, "wall_ns", json_integer(INT64_MAX));
	if (boot_ns < (json_int_t)(10 * MINUTE_NS)) {
		/* A machine that has just been started: by the wall clock, as after a reboot. */
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		json_object_set_new(written, "boot", json_string("another"));
		json_object_set_new(written, "wall_ns",
				    json_integer((json_int_t)((uint64_t)now.tv_sec * NSEC_PER_SEC -
							      10 * MINUTE_NS)));
	} else {
		json_object_set_new(written, "boot_ns",
				    json_integer(boot_ns - (json_int_t)(10 * MINUTE_NS)));
	}
	write_file(f, json);
	json_decref(json);
	fixture_start(f);
	assert_near(use_of(f, "a"), 15);
	make_tenant(f, "b");
	assert_near(use_of(f, "b"), 10);
}

static void expect_set_aside(struct fixture *f, const char *text)
{
	char path[NODE_PATH_MAX], bad[NODE_PATH_MAX], found[256] = "";
	find_path(f, "use.json", path);
	find_path(f, "use.json.bad", bad);
	FILE *file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
	use_state_load(f->node);
	assert_int_equal(access(path, F_OK), -1);
	file = fopen(bad, "r");
	assert_non_null(file);
	assert_int_equal(fread(found, 1, sizeof(found) - 1, file), strlen(text));
	assert_string_equal(found, text);
	fclose(file);
	unlink(bad);
	for (unsigned i = 0; i < NODE_PAST_USES; i++)
		assert_int_equal(f->node->past_use[i].name[0], '\0');
	assert_null(f->node->records);
}

#define WRITTEN "\"written\":{\"boot\":\"b\",\"boot_ns\":1,\"wall_ns\":1}"
#define CARDS "\"devices\":[\"GPU-00000000-0000-0000-0000-000000000001\"]"

static void test_torn_and_foreign(void **state)
{
	struct fixture *f = *state;
	expect_set_aside(f, "");
	expect_set_aside(f, "{\"version\":1,");
	expect_set_aside(f, "[]");
	expect_set_aside(f, "{\"version\":2," WRITTEN "," CARDS ",\"tenants\":[]}");
	expect_set_aside(f, "{\"version\":1," CARDS ",\"tenants\":[]}");
	expect_set_aside(f, "{\"version\":1," WRITTEN ",\"tenants\":[]}");
	expect_set_aside(f, "{\"version\":1," WRITTEN "," CARDS "}");
	/* A valid entry before an invalid one: neither is used. */
	expect_set_aside(f, "{\"version\":1," WRITTEN "," CARDS
			    ",\"tenants\":[{\"name\":\"a\",\"uid\":0,\"use_s\":5},"
			    "{\"name\":\"b\",\"uid\":0,\"use_s\":-5}]}");
	expect_set_aside(f, "{\"version\":1," WRITTEN "," CARDS
			    ",\"tenants\":[],\"containers\":[{\"id\":\"a\"}]}");
	expect_set_aside(f, "{\"version\":1," WRITTEN "," CARDS
			    ",\"tenants\":[],\"tasks\":[{\"pid\":0}]}");
}

/* The beginning of a file, of every length: a crash of the machine may leave it. */
static void test_cut_at_every_byte(void **state)
{
	struct fixture *f = *state;
	make_both(f);
	use_state_save(f->node);
	cleanup_json json_t *json = read_file(f);
	cleanup_free char *text = json_dumps(json, JSON_COMPACT);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}"));
	memset(f->node->past_use, 0, sizeof(f->node->past_use));
	for (size_t n = strlen(text); n-- > 0;) {
		char path[NODE_PATH_MAX];
		text[n] = '\0';
		find_path(f, "use.json", path);
		FILE *file = fopen(path, "w");
		fputs(text, file);
		fclose(file);
		use_state_load(f->node);
		assert_int_equal(access(path, F_OK), -1);
		assert_int_equal(f->node->past_use[0].name[0], '\0');
	}
}

/* A card that was taken out, and a file of more tenants than are remembered: the most used are. */
static void test_more_than_fit(void **state)
{
	struct fixture *f = *state;
	json_t *tenants = json_array();
	for (int i = 0; i < NODE_PAST_USES + 50; i++) {
		char name[32];
		snprintf(name, sizeof(name), "t%d", i);
		json_array_append_new(tenants, json_pack("{s:s, s:i, s:f}", "name", name, "uid", 0,
							 "use_s", (double)(i + 1)));
	}
	json_t *json = json_pack("{s:i, s:{s:s, s:I, s:I}, s:[s], s:o}", "version", 1, "written",
				 "boot", "", "boot_ns", (json_int_t)0, "wall_ns",
				 (json_int_t)INT64_MAX, "devices",
				 "GPU-00000000-0000-0000-0000-000000000099", "tenants", tenants);
	write_file(f, json);
	json_decref(json);
	use_state_load(f->node);
	double least = 1e18;
	for (unsigned i = 0; i < NODE_PAST_USES; i++)
		if (f->node->past_use[i].use.use_ns < least)
			least = f->node->past_use[i].use.use_ns;
	assert_near(least / 1e9, 51);
}

static void test_the_last_save_fails(void **state)
{
	struct fixture *f = *state;
	char path[NODE_PATH_MAX];
	find_path(f, "use.json", path);
	assert_int_equal(mkdir(path, 0700), 0);
	struct captured_log log = captured_log_begin();
	use_state_save(f->node);
	assert_int_equal(captured_log_end(&log, "use of GPU time is not saved: can't write "), 1);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_over_an_end, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_name_is_remembered_once, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_over_a_death, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_it_fades_meanwhile, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_torn_and_foreign, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_cut_at_every_byte, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_more_than_fit, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_the_last_save_fails, fixture_setup,
						fixture_teardown),
	};
	return cmocka_run_group_tests_name("use_state", tests, NULL, NULL);
}
