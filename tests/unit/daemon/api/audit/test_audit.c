/* The audit log of requests: which caller, which tenant, the values before and after; and which requests it omits. */
#include "../../fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/api/audit/audit.h"
#include "daemon/export/page/web_change.h"
#include "daemon/util/json.h"

static char path[96];

static int setup(void **state)
{
	int r = fixture_setup(state);
	struct fixture *f = *state;
	struct error err;
	log_set_level(0);
	snprintf(path, sizeof(path), "%s/audit.log", f->dir);
	strcpy(f->node->config.audit_log, path);
	return r < 0 ? r : audit_start(f->node, &f->node->audit, &err);
}

/* The file's last line but `back`, and how many there are. */
static json_t *line(unsigned back, unsigned *ret_count)
{
	static char text[65536];
	FILE *in = fopen(path, "r");
	char *lines[200];
	unsigned count = 0;
	assert_non_null(in);
	text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
	fclose(in);
	for (char *rest = text, *one; (one = strtok_r(rest, "\n", &rest)) && count < 200;)
		lines[count++] = one;
	if (ret_count)
		*ret_count = count;
	assert_true(count > back);
	json_t *json = json_loads(lines[count - 1 - back], 0, NULL);
	assert_non_null(json);
	assert_int_equal(json_integer_value(json_object_get(json, "version")), 1);
	assert_int_equal(strlen(json_string_value(json_object_get(json, "time"))),
			 strlen("2026-01-01T00:00:00.000Z"));
	return json;
}

/* The line holds these members, as compact JSON in this order; the caller knows the others. */
static void assert_line(unsigned back, const char *event, const char *key, const char *wanted)
{
	cleanup_json json_t *json = line(back, NULL);
	cleanup_free char *text = json_dumps(json_object_get(json, key),
					     JSON_COMPACT | JSON_ENCODE_ANY);
	assert_string_equal(json_string_value(json_object_get(json, "event")), event);
	assert_string_equal(text ? text : "", wanted);
}

static void ok(struct fixture *f, const char *request)
{
	json_decref(fixture_ok(f, request));
}

static void test_old_and_new(void **state)
{
	struct fixture *f = *state;
	char by[160];
	snprintf(by, sizeof(by),
		 "{\"kind\":\"socket\",\"uid\":%u,\"pid\":%d,\"command\":\"test_audit\"}",
		 (unsigned)geteuid(), (int)getpid());
	ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"devices\":[{\"index\":0,"
	      "\"memory_bytes\":1073741824,\"cores_pct\":30}]}");
	assert_line(0, "create", "by", by);
	assert_line(0, "create", "tenant", "\"a\"");
	assert_line(0, "create", "old", "");
	ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"priority\":7}");
	assert_line(0, "set", "old", "{\"priority\":0}");
	assert_line(0, "set", "new", "{\"priority\":7}");
	ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"devices\":[{\"cores_pct\":40}]}");
	assert_line(
		0, "set", "old",
		"{\"devices\":[{\"uuid\":\"GPU-00000000-0000-0000-0000-000000000001\","
		"\"memory_quota_bytes\":1073741824,\"cores_pct\":30.0,\"cores_limit_pct\":30.0}]}");
	assert_line(
		0, "set", "new",
		"{\"devices\":[{\"uuid\":\"GPU-00000000-0000-0000-0000-000000000001\","
		"\"memory_quota_bytes\":1073741824,\"cores_pct\":40.0,\"cores_limit_pct\":40.0}]}");
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\"}");
	assert_line(0, "pause", "new", "{\"paused\":true}");
	ok(f, "{\"version\":1,\"op\":\"resume\",\"name\":\"a\"}");
	assert_line(0, "resume", "old", "{\"paused\":true}");
	ok(f, "{\"version\":1,\"op\":\"cordon\",\"index\":0,\"cordoned\":true}");
	assert_line(0, "cordon", "cordoned", "true");
	ok(f, "{\"version\":1,\"op\":\"cordon\",\"index\":0,\"cordoned\":false}");
	ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}");
	assert_line(0, "remove", "tenant", "\"a\"");
	assert_line(1, "end", "reason", "\"removed by request\"");
	assert_line(1, "end", "by", by);
}

static void test_what_is_no_change(void **state)
{
	struct fixture *f = *state;
	unsigned before, after;
	ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\"}");
	json_decref(line(0, &before));
	ok(f, "{\"version\":1,\"op\":\"list\"}");
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\",\"poll\":true}");
	fixture_refused(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"priority\":9999}",
			EINVAL, "priority");
	json_decref(fixture_request(f, "no JSON"));
	json_decref(fixture_request(f, "[]"));
	json_decref(line(0, &after));
	assert_int_equal(before, after);
}

static void test_a_caller_without_the_right(void **state)
{
	struct fixture *f = *state;
	ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\"}");
	f->session.uid = 4711;
	f->session.is_admin = false;
	fixture_refused(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\",\"swap_out\":true}",
			EPERM, "belongs to uid");
	cleanup_json json_t *json = line(0, NULL);
	assert_int_equal(4711,
			 json_integer_value(json_object_get(json_object_get(json, "by"), "uid")));
	assert_non_null(
		strstr(json_string_value(json_object_get(json, "refused")), "belongs to uid"));
	assert_null(json_object_get(json, "new"));
	assert_line(0, "pause", "swap_out", "true");
}

static void test_the_page(void **state)
{
	struct fixture *f = *state;
	const char *body = "{\"name\":\"a\",\"priority\":3}";
	unsigned status;
	ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\"}");
	free(change_make(f->node, "set", body, strlen(body), &status));
	assert_int_equal(status, 200);
	assert_line(0, "set", "by", "{\"kind\":\"page\"}");
	/* An entry for the daemon's own act does not name the last caller. */
	session_end(&f->session);
	audit_write(f->node->audit, "test", json_object());
	assert_line(0, "test", "by", "{\"kind\":\"daemon\"}");
}

static void test_names_that_are_no_text(void **state)
{
	struct fixture *f = *state;
	f->session.is_admin = false;
	f->session.uid = 4711;
	f->node->is_private = false;
	/* Refused for another reason than a right: no line, and nothing breaks. */
	json_decref(fixture_request(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"\\u0007\"}"));
	json_decref(
		fixture_request(f, "{\"version\":1,\"op\":\"cordon\",\"index\":0,\"cordoned\":true,"
				   "\"name\":\"a\\u0007\\nb\"}"));
	assert_line(0, "cordon", "tenant", "\"a??b\"");
}

static void test_lost_lines_are_reported(void **state)
{
	struct fixture *f = *state;
	char aside[128];
	snprintf(aside, sizeof(aside), "%s.1", path);
	rename(path, aside);
	assert_int_equal(mkdir(path, 0700), 0);
	audit_reopen(f->node->audit);
	ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\"}");
	ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"b\"}");
	assert_int_equal(audit_figures(f->node->audit).lost, 2);
	rmdir(path);
	ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"c\"}");
	assert_line(1, "lost", "lines", "2");
	assert_line(0, "create", "tenant", "\"c\"");
	ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"d\"}");
	assert_line(1, "create", "tenant", "\"c\"");
	assert_int_equal(audit_figures(f->node->audit).lost, 2);
}

static void test_start_and_stop(void **state)
{
	struct fixture *f = *state;
	cleanup_json json_t *json = line(0, NULL);
	assert_string_equal(json_string_value(json_object_get(json, "event")), "start");
	f->node->audit = audit_stop(f->node->audit);
	assert_line(0, "stop", "by", "{\"kind\":\"daemon\"}");
	/* Off: nothing is written, and nothing fails. */
	ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\"}");
	assert_line(0, "stop", "by", "{\"kind\":\"daemon\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_old_and_new, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_change, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_caller_without_the_right, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_the_page, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_names_that_are_no_text, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_lost_lines_are_reported, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_start_and_stop, setup, fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
