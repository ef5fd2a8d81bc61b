/* What the daemon tells, as tracks: leases once each, states, figures. */
#include "written.h"

#include <stdlib.h>

#include "cli/trace/tracks.h"

#define MS 1000000
#define BEGIN (1000 * (uint64_t)MS)

static struct tracks *tracks;
static struct out out;

static int setup(void **state)
{
	tracks = calloc(1, sizeof(*tracks));
	written_begin(&out);
	tracks_begin(tracks, &out, "a", BEGIN);
	return 0;
}

static int teardown(void **state)
{
	free(tracks);
	return 0;
}

/* A reply at `ms` since the begin, with these leases of GPU 3. */
static void add(uint64_t ms, const char *state, const char *leases)
{
	json_t *list = json_loads(leases, 0, NULL);
	assert_non_null(list);
	json_t *reply = json_pack("{s:s, s:[{s:i, s:I, s:I, s:f, s:o}]}", "state", state, "devices",
				  "index", 3, "memory_used_bytes",
				  (json_int_t)(ms < 50 ? 100 : 200), "leases_given", (json_int_t)ms,
				  "got_1s_pct", 50.0, "leases", list);
	assert_non_null(reply);
	tracks_add(tracks, reply, BEGIN + ms * MS);
	json_decref(reply);
}

#define SPAN(number, tenant, kind, begin_ms, end, more) \
	"{\"number\":" #number ",\"tenant\":\"" tenant "\",\"kind\":\"" kind \
	"\",\"begin_ns\":" #begin_ms "000000,\"end_ns\":" end more "}"

static void test_leases(void **state)
{
	add(10, "running",
	    "[" SPAN(1, "a", "lease", 990, "1005000000", ",\"end\":\"turn\"") "," SPAN(
		    2, "b", "lease", 1005, "1008000000",
		    ",\"end\":\"idle\",\"expired\":true") "," SPAN(3, "a", "lease", 1008, "null",
								   ",\"closing_ns\":null") "]");
	/* Told again, and over. */
	add(30, "running",
	    "[" SPAN(
		    3, "a", "lease", 1008, "1020000000",
		    ",\"closing_ns\":1018000000,\"end\":\"cap\",\"with_step\":true") "," SPAN(4, "a",
											      "free",
											      1025,
											      "null",
											      ",\"end\":null") "]");
	add(40, "running", "[" SPAN(4, "a", "free", 1025, "null", "") "]");
	tracks_end(tracks, BEGIN + 45 * MS);
	json_t *all = written_end(&out);
	/* One began before the trace, one ran without a lease. */
	assert_int_equal(tracks->leases, 1);
	const json_t *e = find_event(all, "X", "lease", 0);
	assert_true(number_of(e, "ts") == 0 && number_of(e, "dur") == 5000);
	assert_int_equal(number_of(e, "pid"), TRACKS_CARD_PID + 3);
	assert_string_equal(text_of(e, "end"), "turn");
	assert_true(json_is_true(json_object_get(json_object_get(e, "args"), "began_before")));
	e = find_event(all, "X", "lease", 1);
	assert_string_equal(text_of(e, "tenant"), "b");
	assert_true(json_is_true(json_object_get(json_object_get(e, "args"), "expired")));
	assert_true(number_of(e, "tid") != number_of(find_event(all, "X", "lease", 0), "tid"));
	e = find_event(all, "X", "lease", 2);
	assert_true(number_of(e, "ts") == 8000 && number_of(e, "dur") == 12000);
	assert_string_equal(text_of(e, "end"), "cap");
	assert_true(json_is_true(json_object_get(json_object_get(e, "args"), "with_step")));
	assert_null(json_object_get(json_object_get(find_event(all, "X", "lease", 0), "args"),
				    "with_step"));
	e = find_event(all, "X", "drain", 0);
	assert_true(number_of(e, "ts") == 18000 && number_of(e, "dur") == 2000);
	e = find_event(all, "X", "alone", 0);
	assert_true(number_of(e, "ts") == 25000 && number_of(e, "dur") == 20000);
	assert_null(find_event(all, "X", "lease", 3));
	assert_null(find_event(all, "X", "alone", 1));
	json_decref(all);
}

static void test_states_and_figures(void **state)
{
	add(10, "running", "[]");
	add(20, "running", "[]");
	add(30, "paused", "[]");
	add(60, "idle", "[]");
	tracks_end(tracks, BEGIN + 70 * MS);
	json_t *all = written_end(&out);
	const json_t *e = find_event(all, "X", "running", 0);
	assert_true(number_of(e, "ts") == 0 && number_of(e, "dur") == 30000);
	e = find_event(all, "X", "paused", 0);
	assert_true(number_of(e, "ts") == 30000 && number_of(e, "dur") == 30000);
	e = find_event(all, "X", "idle", 0);
	assert_true(number_of(e, "ts") == 60000 && number_of(e, "dur") == 10000);
	/* A figure where it changes. */
	assert_int_equal(number_of(find_event(all, "C", "memory, GPU 3", 0), "bytes"), 100);
	assert_int_equal(number_of(find_event(all, "C", "memory, GPU 3", 1), "bytes"), 200);
	assert_null(find_event(all, "C", "memory, GPU 3", 2));
	assert_null(find_event(all, "C", "compute, 1 s, GPU 3", 1));
	json_decref(all);
}

static void test_lost_leases(void **state)
{
	json_t *reply = json_loads(
		"{\"devices\":[{\"index\":0,\"leases_lost\":3},{\"index\":1,\"leases_lost\":4}]}",
		0, NULL);
	assert_non_null(reply);
	tracks_add(tracks, reply, BEGIN + MS);
	tracks_add(tracks, reply, BEGIN + 2 * MS);
	json_decref(reply);
	tracks_end(tracks, BEGIN + 3 * MS);
	assert_int_equal(tracks->leases_lost, 14);
	json_decref(written_end(&out));
}

/* A daemon of another version: what it does not say is left out. */
static void test_a_reply_without_anything(void **state)
{
	json_t *reply = json_loads(
		"{\"devices\":[{},[],1,{\"leases\":[{},1,{\"tenant\":1}]}],\"state\":4}", 0, NULL);
	assert_non_null(reply);
	tracks_add(tracks, reply, BEGIN + MS);
	json_decref(reply);
	tracks_end(tracks, BEGIN + 2 * MS);
	assert_int_equal(tracks->leases, 0);
	json_decref(written_end(&out));
}

#define tracks_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		tracks_test(test_leases),
		tracks_test(test_states_and_figures),
		tracks_test(test_lost_leases),
		tracks_test(test_a_reply_without_anything),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
