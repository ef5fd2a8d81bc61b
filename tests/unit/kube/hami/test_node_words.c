/* What stands in single words on a node: lock, handshake, cordon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/hami/cordon.h"
#include "kube/hami/handshake.h"
#include "kube/hami/node_lock.h"

static void test_lock(void **state)
{
	struct node_lock lock;
	char text[NODE_LOCK_MAX];
	static const char recorded[] = "2026-08-21T10:00:00Z,team-a,train-0";
	assert_int_equal(node_lock_parse(recorded, &lock, NULL), 0);
	assert_int_equal(lock.since_s, 1787306400);
	assert_true(node_lock_is_of(&lock, "team-a", "train-0"));
	assert_false(node_lock_is_of(&lock, "team-b", "train-0"));
	assert_false(node_lock_is_of(&lock, "team-a", "train-00"));
	node_lock_format(&lock, text);
	assert_string_equal(text, recorded);
	assert_false(node_lock_is_expired(&lock, 1787306400 + 300, NODE_LOCK_EXPIRY_S));
	assert_true(node_lock_is_expired(&lock, 1787306400 + 301, NODE_LOCK_EXPIRY_S));
	assert_false(node_lock_is_expired(&lock, 1787306400 - 9999, NODE_LOCK_EXPIRY_S));
}

static void test_lock_of_nobody(void **state)
{
	struct node_lock lock;
	char text[NODE_LOCK_MAX];
	assert_int_equal(node_lock_parse("2026-08-21T18:00:00+08:00", &lock, NULL), 0);
	assert_string_equal(lock.pod, "");
	node_lock_format(&lock, text);
	assert_string_equal(text, "2026-08-21T10:00:00Z");
}

static void bad_lock(const char *text, const char *why)
{
	struct node_lock lock;
	struct error err;
	assert_int_equal(node_lock_parse(text, &lock, &err), -22);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void test_bad_locks(void **state)
{
	char longest[600] = "2026-08-21T10:00:00Z,";
	memset(longest + strlen(longest), 'a', 300);
	strcat(longest, ",pod");
	bad_lock("", "must be a time");
	bad_lock("soon,a,b", "must be a time");
	bad_lock("2026-08-21T10:00:00Z,a", "TIME,NAMESPACE,POD");
	bad_lock("2026-08-21T10:00:00Z,a,b,c", "TIME,NAMESPACE,POD");
	bad_lock("2026-08-21T10:00:00Z,,b", "namespace ''");
	bad_lock("2026-08-21T10:00:00Z,a,", "pod ''");
	bad_lock(longest, "namespace 'aaa");
}

static void test_handshake(void **state)
{
	char text[HANDSHAKE_MAX];
	assert_int_equal(handshake_parse(NULL), HANDSHAKE_NONE);
	assert_int_equal(handshake_parse("Requesting_2026-08-21 10:00:00"), HANDSHAKE_REQUESTING);
	assert_int_equal(handshake_parse("Requesting_2026.08.21 10:00:00"), HANDSHAKE_REQUESTING);
	assert_int_equal(handshake_parse("Deleted_2026-08-21 10:00:00"), HANDSHAKE_DELETED);
	handshake_answer(1787306400, text);
	assert_string_equal(text, "Reported_2026-08-21 10:00:00");
	assert_int_equal(handshake_parse(text), HANDSHAKE_NONE);
	assert_int_equal(handshake_parse(""), HANDSHAKE_NONE);
}

static void test_cordon(void **state)
{
	assert_false(cordon_has(NULL, "GPU-a"));
	assert_false(cordon_has("", "GPU-a"));
	assert_true(cordon_has("GPU-a", "GPU-a"));
	assert_true(cordon_has("GPU-b, GPU-a ,GPU-c", "GPU-a"));
	assert_true(cordon_has(",,GPU-a,", "GPU-a"));
	assert_false(cordon_has("GPU-aa,GPU-", "GPU-a"));
	assert_false(cordon_has(",", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock),      cmocka_unit_test(test_lock_of_nobody),
		cmocka_unit_test(test_bad_locks), cmocka_unit_test(test_handshake),
		cmocka_unit_test(test_cordon),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
