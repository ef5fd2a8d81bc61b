/* A tenant with more processes than one reply has room for, and processes that record late: the test is the daemon. */
#include "../test.h"

#include <errno.h>

#include "cli/trace/record.h"
#include "ring.h"

#define PROCESSES (2 * CLIENT_FDS_MAX + 3)
#define FIRST_PID 100
#define SILENT_PID 7 /* never records */

static unsigned processes, polls, given, in_reply;
static uint64_t poll_ns; /* time between two polls */

int client_request(struct client *client, const char *op, json_t *body, json_t **ret_reply,
		   struct error *err)
{
	json_t *rings = json_array(), *untraced = json_pack("[i]", SILENT_PID);
	json_int_t now;

	json_decref(body);
	in_reply = 0;
	if (!strcmp(op, "trace_poll"))
		for (polls++; in_reply < CLIENT_FDS_MAX && given + in_reply < processes; in_reply++)
			json_array_append_new(rings, json_pack("{s:i, s:i, s:s}", "number",
							       (int)(given + in_reply + 1), "pid",
							       (int)(FIRST_PID + given + in_reply),
							       "name", "work"));
	if (!processes)
		json_array_append_new(untraced, json_integer(FIRST_PID));
	now = (json_int_t)(1000 + polls * poll_ns);
	*ret_reply = json_pack("{s:s, s:s, s:{s:I, s:I}, s:o, s:o, s:b}", "name", "t", "clock",
			       "realtime", "moment", "ticks", now, "now_ns", now, "rings", rings,
			       "untraced", untraced, "ended", 1);
	return 0;
}

size_t client_take_fds(struct client *client, int *ret_fds, size_t most)
{
	size_t count = in_reply;

	assert_true(count <= most);
	for (size_t i = 0; i < count; i++)
		munmap(ring_make(&ret_fds[i]), sizeof(struct trace_ring));
	given += in_reply;
	in_reply = 0;
	return count;
}

const char *client_run_dir(const struct client *client)
{
	return "";
}

static void begin(unsigned process_count, uint64_t between_polls_ns)
{
	polls = given = in_reply = 0;
	processes = process_count;
	poll_ns = between_polls_ns;
}

/* The first round may be the last. */
static void test_a_round_takes_all_rings(void **state)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct error err = { 0 };
	struct record *record;

	begin(PROCESSES, 1);
	assert_int_equal(record_begin(NULL, "t", fd, &record, &err), 0);
	assert_int_equal(record_round(record, true, &err), 0);
	assert_int_equal(record->process_count, PROCESSES);
	assert_int_equal(polls, 3);
	assert_int_equal(record_finish(record), 0);
	record_free(record);
	close(fd);
}

/* A process that begins to record late is no longer named. */
static void test_untraced_processes(void **state)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct error err = { 0 };
	struct record *record;

	begin(0, RECORD_ANSWER_NS);
	assert_int_equal(record_begin(NULL, "t", fd, &record, &err), 0);
	assert_int_equal(record_round(record, false, &err), 0);
	assert_int_equal(record_untraced(record, 0), 0);
	assert_int_equal(record_round(record, false, &err), 0);
	assert_int_equal(record_untraced(record, 0), SILENT_PID);
	assert_int_equal(record_untraced(record, 1), FIRST_PID);
	assert_int_equal(record_untraced(record, 2), 0);
	processes = 1;
	assert_int_equal(record_round(record, true, &err), 0);
	assert_int_equal(record->process_count, 1);
	assert_int_equal(record_untraced(record, 0), SILENT_PID);
	assert_int_equal(record_untraced(record, 1), 0);
	assert_int_equal(record_finish(record), 0);
	record_free(record);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_round_takes_all_rings),
		cmocka_unit_test(test_untraced_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
