/* How a tenant shares its GPU, by its request and its kind, and which group it joins. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/space/sharing_mode.h"

/* A tenant that may share by space. */
static struct sharing_facts usual(void)
{
	return (struct sharing_facts){ .setting = SHARING_TIME,
				       .uid = 1000,
				       .namespace_name = "",
				       .device_count = 1,
				       .limit_pct = 100,
				       .has_leases = true };
}

static struct sharing_request ask(enum sharing_way way, const char *group)
{
	struct sharing_request request = { .has_way = true, .way = way };
	strcpy(request.group, group);
	return request;
}

static struct sharing_choice chosen(const struct sharing_request *request,
				    const struct sharing_facts *facts)
{
	struct sharing_choice c;
	struct error err = { 0 };
	assert_int_equal(sharing_choose(request, facts, &c, &err), 0);
	return c;
}

static void assert_refused(const struct sharing_request *request, const struct sharing_facts *facts,
			   int code, const char *why)
{
	struct sharing_choice c;
	struct error err = { 0 };
	assert_int_equal(sharing_choose(request, facts, &c, &err), -code);
	if (!strstr(err.text, why))
		fail_msg("'%s' is not in '%s'", why, err.text);
}

static void test_groups(void **state)
{
	struct sharing_facts f = usual();
	struct sharing_request nothing = { 0 };
	struct sharing_request space = ask(SHARING_SPACE, ""), named = ask(SHARING_SPACE, "ml");
	assert_int_equal(chosen(&nothing, &f).way, SHARING_TIME);
	assert_string_equal(chosen(&nothing, &f).group, "");
	assert_string_equal(chosen(&space, &f).group, "user/1000");
	assert_string_equal(chosen(&named, &f).group, "ml");
	/* Of a namespace no name leads out. */
	f.namespace_name = "team-a";
	assert_string_equal(chosen(&space, &f).group, "namespace/team-a");
	assert_string_equal(chosen(&named, &f).group, "namespace/team-a/ml");
	/* Without a request the setting applies. */
	f.setting = SHARING_SPACE;
	assert_int_equal(chosen(&nothing, &f).way, SHARING_SPACE);
}

static void test_refusals(void **state)
{
	struct sharing_facts f = usual();
	struct sharing_request space = ask(SHARING_SPACE, "");
	struct sharing_request contradicts = ask(SHARING_TIME, "ml"),
			       bad = ask(SHARING_SPACE, "a/b");
	assert_refused(&contradicts, &f, EINVAL, "group: 'ml': possible only with");
	assert_refused(&bad, &f, EINVAL, "group: ");
	f.device_count = 2;
	assert_refused(&space, &f, EINVAL, "the tenant has 2");
	f = usual();
	f.is_movable = true;
	assert_refused(&space, &f, EINVAL, "can't be moved off");
	f = usual();
	f.limit_pct = 0.99;
	assert_refused(&space, &f, EINVAL,
		       "cores_limit_pct (--cores-limit) 0.99 could be less than one SM");
	f.limit_pct = 1;
	assert_int_equal(chosen(&space, &f).way, SHARING_SPACE);
	/* Of a GPU whose number of SMs is known, and of a small instance of one. */
	f.sms = 132;
	f.limit_pct = 0.76;
	assert_int_equal(chosen(&space, &f).way, SHARING_SPACE);
	f.limit_pct = 0.75;
	assert_refused(&space, &f, EINVAL,
		       "cores_limit_pct (--cores-limit) 0.75 % of 132 SMs is less than one SM: "
		       "must be 0.76 % or more");
	f.sms = 16;
	f.limit_pct = 6;
	assert_refused(&space, &f, EINVAL,
		       "cores_limit_pct (--cores-limit) 6 % of 16 SMs is less than one SM: "
		       "must be 6.25 % or more");
	f.limit_pct = 6.25;
	assert_int_equal(chosen(&space, &f).way, SHARING_SPACE);
	f = usual();
	f.has_leases = false;
	assert_refused(&space, &f, EINVAL, "policy = lease");
	f = usual();
	f.missing = "there is no program";
	assert_refused(&space, &f, EOPNOTSUPP, "there is no program; or use sharing 'time'");
}

static void test_keys(void **state)
{
	const struct space_known list[] = { { { 0, 1000, "user/1000" }, 3 },
					    { { 0, 1000, "ml" }, 1 },
					    { { 1, 1000, "ml" }, 1 },
					    { { 0, 1001, "user/1001" }, 2 } };
	static const struct {
		struct space_key key;
		int place;
		unsigned number;
	} rows[] = {
		{ { 0, 1000, "ml" }, 1, 1 },        { { 1, 1000, "ml" }, 2, 1 },
		{ { 0, 1001, "user/1001" }, 3, 2 }, { { 0, 1000, "other" }, -1, 4 },
		{ { 1, 1000, "other" }, -1, 2 },    { { 2, 1000, "ml" }, -1, 1 },
	};
	int place;
	unsigned number;
	struct error err = { 0 };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(space_find(list, 4, &rows[i].key, &place, &number, &err), 0);
		assert_int_equal(place, rows[i].place);
		assert_int_equal(number, rows[i].number);
	}
	/* The lowest that is free. */
	const struct space_key fresh = { 0, 7, "seven" };
	assert_int_equal(space_find(list + 2, 2, &fresh, &place, &number, &err), 0);
	assert_int_equal(number, 1);
	/* A name that was given is one user's, on all cards. */
	const struct space_key theirs = { 2, 1001, "ml" };
	assert_int_equal(space_find(list, 4, &theirs, &place, &number, &err), -EPERM);
	assert_non_null(strstr(err.text, "another user (uid 1000)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups),
					    cmocka_unit_test(test_refusals),
					    cmocka_unit_test(test_keys) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
