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
#include "scheduler/service/authorize.h"

#define BIT(verb) (1U << (verb))

static void test_verbs(void **state)
{
	struct error err = { 0 };
	unsigned verbs;
	assert_int_equal(authorize_parse("none", &verbs, &err), 0);
	assert_int_equal(verbs, 0);
	assert_int_equal(authorize_parse("bind", &verbs, &err), 0);
	assert_int_equal(verbs, BIT(AUTHORIZE_BIND));
	assert_int_equal(
		authorize_parse(" webhook,filter , prioritize,preempt, bind,explain,metrics ",
				&verbs, &err),
		0);
	assert_int_equal(verbs, BIT(AUTHORIZE_VERBS) - 1);
	static const char *const wrong[] = { "",      ",",       "bind,", "Bind",     "bind filter",
					     "binds", "healthz", "bin",   "none,bind" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		verbs = 77;
		if (authorize_parse(wrong[i], &verbs, &err) != -EINVAL || verbs != 77)
			fail_msg("'%s': %u: %s", wrong[i], verbs, err.text);
		assert_non_null(strstr(err.text, "must be"));
	}
}

static unsigned ask(struct authorizer *authorizer, enum authorize_verb verb,
		    const char *authorization)
{
	const struct server_request request = { .path = "/", .authorization = authorization };
	struct error err = { 0 };
	unsigned status = authorize(authorizer, verb, &request, &err);
	assert_int_equal(!status, !err.code);
	return status;
}

static void test_without_any_terms(void **state)
{
	struct authorizer authorizer = { .names = "*" };
	for (unsigned i = 0; i <= AUTHORIZE_OPEN; i++)
		assert_int_equal(ask(&authorizer, i, NULL), 0);
}

static void test_certificates_are_shown_by_tls(void **state)
{
	struct authorizer authorizer = { .verbs = BIT(AUTHORIZE_BIND) | BIT(AUTHORIZE_METRICS),
					 .names = "*" };
	for (unsigned i = 0; i <= AUTHORIZE_OPEN; i++)
		assert_int_equal(ask(&authorizer, i, "Bearer 0123456789abcdef"),
				 authorizer.verbs & BIT(i) && i != AUTHORIZE_OPEN ? 403 : 0);
	assert_int_not_equal(authorizer.logged_ns, 0);
	authorizer.is_local_trusted = true;
	for (unsigned i = 0; i <= AUTHORIZE_OPEN; i++)
		assert_int_equal(ask(&authorizer, i, NULL), 0);
}

static void test_a_token(void **state)
{
	char path[] = "/tmp/allot-test-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, "0123456789abcdef\n", 17) == 17);
	close(fd);
	struct authorizer authorizer = { .names = "*", .token_file = path };
	/* Of people's questions alone: kube-scheduler has none. */
	for (unsigned i = 0; i <= AUTHORIZE_OPEN; i++)
		assert_int_equal(ask(&authorizer, i, NULL),
				 i == AUTHORIZE_EXPLAIN || i == AUTHORIZE_METRICS ? 401 : 0);
	assert_int_equal(ask(&authorizer, AUTHORIZE_EXPLAIN, "Bearer 0123456789abcdef"), 0);
	assert_int_equal(ask(&authorizer, AUTHORIZE_EXPLAIN, "Bearer 0123456789abcdeF"), 401);
	assert_int_equal(ask(&authorizer, AUTHORIZE_EXPLAIN, "0123456789abcdef"), 401);
	/* One of two ways in is enough; of a verb that has no token there is one. */
	authorizer.verbs = BIT(AUTHORIZE_EXPLAIN) | BIT(AUTHORIZE_BIND);
	assert_int_equal(ask(&authorizer, AUTHORIZE_EXPLAIN, "Bearer 0123456789abcdef"), 0);
	assert_int_equal(ask(&authorizer, AUTHORIZE_EXPLAIN, NULL), 401);
	assert_int_equal(ask(&authorizer, AUTHORIZE_BIND, "Bearer 0123456789abcdef"), 403);
	/* What can't be read lets nobody in. */
	unlink(path);
	assert_int_equal(ask(&authorizer, AUTHORIZE_METRICS, "Bearer 0123456789abcdef"), 503);
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
