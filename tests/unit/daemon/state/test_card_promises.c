/* Guarantees in force, where the guarantees of a card sum to more than 100 %. */
#include "../fixture.h"

#include <math.h>

#include "daemon/state/card_promises.h"

#define OTHER 12345 /* another user */
#define CREATE(name, cores) \
	"{\"version\":1,\"op\":\"create\",\"name\":\"" name \
	"\",\"devices\":[{\"index\":0,\"memory_bytes\":67108864,\"cores_pct\":" cores \
	",\"cores_limit_pct\":100}]}"

static struct tenant *make(struct fixture *f, const char *name, const char *line)
{
	json_decref(fixture_ok(f, line));
	return node_find_tenant(f->node, name);
}

static void assert_guaranteed(const struct tenant *t, double pct)
{
	assert_true(fabs(t->device[0].guaranteed_pct - pct) < 1e-6);
}

static void test_by_user(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make(f, "a", CREATE("a", "50"));
	struct tenant *b = make(f, "b", CREATE("b", "50"));
	assert_guaranteed(a, 50);
	assert_guaranteed(b, 50);
	/* All are one user's: each has the same part of its guarantee. */
	struct tenant *c = make(f, "c", CREATE("c", "100"));
	assert_guaranteed(a, 25);
	assert_guaranteed(c, 50);
	/* The user of `a` keeps 50 %, however many tenants the other one makes. */
	struct tenant *d = make(f, "d", CREATE("d", "100"));
	b->terms.uid = c->terms.uid = d->terms.uid = OTHER;
	node_update_guarantees(f->node);
	assert_guaranteed(a, 50);
	assert_guaranteed(b, 10);
	assert_guaranteed(c, 20);
	assert_guaranteed(d, 20);
	tenant_remove(d, NULL);
	assert_guaranteed(a, 50);
	assert_guaranteed(b, 50.0 / 3);
	/* The other user gets the part that this user does not ask for. */
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"devices\":[{"
				  "\"index\":0,\"cores_pct\":10}]}"));
	assert_guaranteed(a, 10);
	assert_guaranteed(b, 30);
	assert_guaranteed(c, 60);
	tenant_remove(c, NULL);
	assert_guaranteed(a, 10);
	assert_guaranteed(b, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_by_user, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("guarantees", tests, NULL, NULL);
}
