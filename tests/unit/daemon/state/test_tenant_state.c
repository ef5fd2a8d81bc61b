/* A tenant's state file that cannot be written for some time. */
#include "../fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../captured_log.h"
#include "daemon/state/tenant_state.h"

static void test_a_failed_save_is_logged_once_and_tried_again(void **state)
{
	struct fixture *f = *state;
	char path[NODE_PATH_MAX];
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\","
				  "\"devices\":[{\"index\":1,\"memory_bytes\":1073741824}]}"));
	struct tenant *t = node_find_tenant(f->node, "a");
	tenant_path(t, "tenant.json", path);
	assert_int_equal(unlink(path), 0);
	/* No file can be renamed over a directory. */
	assert_int_equal(mkdir(path, 0700), 0);
	struct captured_log log = captured_log_begin();
	tenant_state_save_or_retry(t, true, "its place may be lost");
	assert_int_equal(captured_log_end(&log, "(its place may be lost; trying again)"), 1);
	/* The next try fails too. */
	log = captured_log_begin();
	fixture_turn(f, 100);
	assert_int_equal(captured_log_end(&log, "trying again"), 0);
	assert_true(t->unsaved);
	assert_int_equal(rmdir(path), 0);
	fixture_until(f, !t->unsaved);
	assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_failed_save_is_logged_once_and_tried_again,
						fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("tenant_state", tests, NULL, NULL);
}
