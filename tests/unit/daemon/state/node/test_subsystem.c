/* Which rows of the table are called, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/state/node/node.h"
#include "daemon/state/node/subsystem.h"

static char told[64];
static int answer_of_b;
static bool is_needed;

static void note(const char *what)
{
	strcat(told, what);
}

static int added_a(struct tenant *tenant, bool is_new, struct error *err)
{
	note(is_new ? "+a" : "~a");
	return 0;
}

static int added_b(struct tenant *tenant, bool is_new, struct error *err)
{
	note("+b");
	return answer_of_b < 0 ? error_set(err, -answer_of_b, "b does not want it") : 0;
}

static int added_c(struct tenant *tenant, bool is_new, struct error *err)
{
	note("+c");
	return 0;
}

static void begins_b(struct tenant *tenant)
{
	note(".b");
}

static void removed_a(struct tenant *tenant)
{
	note("-a");
}

static void removed_c(struct tenant *tenant)
{
	note("-c");
}

static void changed(struct node *node)
{
	note("*");
}

static void populated(struct node *node)
{
	note(node->populated ? "!" : "0");
}

static bool needs(const struct node *node)
{
	return is_needed;
}

static const struct subsystem table[] = {
	{ .name = "a", .tenant_added = added_a, .tenant_removed = removed_a },
	{ .name = "b", .tenant_added = added_b, .tenant_begins = begins_b, .tenants_changed = changed },
	{ .name = "c",
	  .tenant_added = added_c,
	  .tenant_removed = removed_c,
	  .populated_changed = populated,
	  .needs_census = needs },
	{ 0 },
};

static struct node *node;

static int begin(void **state)
{
	*told = '\0';
	answer_of_b = 0;
	node = calloc(1, sizeof(*node));
	node->subsystems = table;
	return !node;
}

static int end(void **state)
{
	free(node);
	return 0;
}

static void test_in_order_and_in_reverse(void **state)
{
	assert_int_equal(notify_tenant_added(node, NULL, true, NULL), 0);
	notify_tenant_removed(node, NULL);
	assert_string_equal(told, "+a+b.b+c-c-a");
}

static void test_a_failure_ends_it(void **state)
{
	struct error err = { 0 };
	answer_of_b = -ENOSPC;
	assert_int_equal(notify_tenant_added(node, NULL, false, &err), -ENOSPC);
	assert_string_equal(err.text, "b does not want it");
	assert_string_equal(told, "~a+b");
}

static void test_populated_is_reported_once(void **state)
{
	node->tenant_count = 1;
	notify_tenants_changed(node);
	node->tenant_count = 2;
	notify_tenants_changed(node);
	node->tenant_count = 0;
	notify_tenants_changed(node);
	assert_string_equal(told, "*!**0");
}

static void test_one_that_needs_it_is_enough(void **state)
{
	is_needed = false;
	assert_false(any_needs_census(node));
	is_needed = true;
	assert_true(any_needs_census(node));
}

/* A node that could not be opened has no table yet. */
static void test_without_a_table(void **state)
{
	node->subsystems = NULL;
	assert_int_equal(notify_tenant_added(node, NULL, true, NULL), 0);
	notify_tenant_removed(node, NULL);
	notify_tenants_changed(node);
	assert_false(any_needs_census(node));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order_and_in_reverse, begin, end),
		cmocka_unit_test_setup_teardown(test_a_failure_ends_it, begin, end),
		cmocka_unit_test_setup_teardown(test_populated_is_reported_once, begin, end),
		cmocka_unit_test_setup_teardown(test_one_that_needs_it_is_enough, begin, end),
		cmocka_unit_test_setup_teardown(test_without_a_table, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
