/* A tenant with more processes than one reply has room for: the test is the daemon. */
#include "../test.h"

#include <errno.h>

#include "cli/trace/record.h"
#include "ring.h"

#define PROCESSES (2 * CLIENT_FDS_MAX + 3)

static unsigned polls, given, in_reply;

int client_request(struct client *client, const char *op, json_t *body, json_t **ret_reply,
		   struct error *err)
{
	json_t *rings = json_array();

	json_decref(body);
	in_reply = 0;
	if (!strcmp(op, "trace_poll"))
		for (polls++; in_reply < CLIENT_FDS_MAX && given + in_reply < PROCESSES; in_reply++)
			json_array_append_new(rings, json_pack("{s:i, s:i, s:s}", "number",
							       (int)(given + in_reply + 1), "pid",
							       (int)(100 + given + in_reply),
							       "name", "work"));
	*ret_reply = json_pack("{s:s, s:s, s:{s:I, s:I}, s:o, s:b}", "name", "t", "clock",
			       "realtime", "moment", "ticks", (json_int_t)(1000 + polls), "now_ns",
			       (json_int_t)(1000 + polls), "rings", rings, "ended", 1);
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

/* The first round may be the last. */
static void test_a_round_takes_all_rings(void **state)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct error err = { 0 };
	struct record *record;

	assert_int_equal(record_begin(NULL, "t", fd, &record, &err), 0);
	assert_int_equal(record_round(record, true, &err), 0);
	assert_int_equal(record->process_count, PROCESSES);
	assert_int_equal(polls, 3);
	assert_int_equal(record_finish(record), 0);
	record_free(record);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_round_takes_all_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
