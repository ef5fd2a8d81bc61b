/* Who is let in, without TLS: certificates are tests/integration/test_scheduler_clients.py's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "scheduler/service/door.h"

#define BIT(verb) (1U << (verb))

static void test_verbs(void **state)
{
	struct error err = { 0 };
	unsigned verbs;
	assert_int_equal(door_parse("none", &verbs, &err), 0);
	assert_int_equal(verbs, 0);
	assert_int_equal(door_parse("bind", &verbs, &err), 0);
	assert_int_equal(verbs, BIT(DOOR_BIND));
	assert_int_equal(door_parse(" webhook,filter , prioritize,preempt, bind,explain,metrics ",
				    &verbs, &err),
			 0);
	assert_int_equal(verbs, BIT(DOOR_VERBS) - 1);
	static const char *const wrong[] = { "",      ",",       "bind,", "Bind",     "bind filter",
					     "binds", "healthz", "bin",   "none,bind" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		verbs = 77;
		if (door_parse(wrong[i], &verbs, &err) != -EINVAL || verbs != 77)
			fail_msg("'%s': %u: %s", wrong[i], verbs, err.text);
		assert_non_null(strstr(err.text, "must be"));
	}
}

static unsigned ask(struct door *door, enum door_verb verb, const char *authorization)
{
	const struct server_request request = { .path = "/", .authorization = authorization };
	struct error err = { 0 };
	unsigned status = door_check(door, verb, &request, &err);
	assert_int_equal(!status, !err.code);
	return status;
}

static void test_without_any_terms(void **state)
{
	struct door door = { .names = "*" };
	for (unsigned i = 0; i <= DOOR_OPEN; i++)
		assert_int_equal(ask(&door, i, NULL), 0);
}

static void test_certificates_are_shown_by_tls(void **state)
{
	struct door door = { .verbs = BIT(DOOR_BIND) | BIT(DOOR_METRICS), .names = "*" };
	for (unsigned i = 0; i <= DOOR_OPEN; i++)
		assert_int_equal(ask(&door, i, "Bearer 0123456789abcdef"),
				 door.verbs & BIT(i) && i != DOOR_OPEN ? 403 : 0);
	assert_int_not_equal(door.said_ns, 0);
	door.is_local_trusted = true;
	for (unsigned i = 0; i <= DOOR_OPEN; i++)
		assert_int_equal(ask(&door, i, NULL), 0);
}

static void test_a_token(void **state)
{
	char path[] = "/tmp/allot-test-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, "0123456789abcdef\n", 17) == 17);
	close(fd);
	struct door door = { .names = "*", .token_file = path };
	/* Of people's questions alone: kube-scheduler has none. */
	for (unsigned i = 0; i <= DOOR_OPEN; i++)
		assert_int_equal(ask(&door, i, NULL),
				 i == DOOR_EXPLAIN || i == DOOR_METRICS ? 401 : 0);
	assert_int_equal(ask(&door, DOOR_EXPLAIN, "Bearer 0123456789abcdef"), 0);
	assert_int_equal(ask(&door, DOOR_EXPLAIN, "Bearer 0123456789abcdeF"), 401);
	assert_int_equal(ask(&door, DOOR_EXPLAIN, "0123456789abcdef"), 401);
	/* One of two ways in is enough; of a verb that has no token there is one. */
	door.verbs = BIT(DOOR_EXPLAIN) | BIT(DOOR_BIND);
	assert_int_equal(ask(&door, DOOR_EXPLAIN, "Bearer 0123456789abcdef"), 0);
	assert_int_equal(ask(&door, DOOR_EXPLAIN, NULL), 401);
	assert_int_equal(ask(&door, DOOR_BIND, "Bearer 0123456789abcdef"), 403);
	/* What can't be read lets nobody in. */
	unlink(path);
	assert_int_equal(ask(&door, DOOR_METRICS, "Bearer 0123456789abcdef"), 503);
}

int main(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verbs),
		cmocka_unit_test(test_without_any_terms),
		cmocka_unit_test(test_certificates_are_shown_by_tls),
		cmocka_unit_test(test_a_token),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
