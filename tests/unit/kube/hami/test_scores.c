#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/hami/scores.h"

static void test_there_and_back(void **state)
{
	static const char recorded[] = "[{\"uuid\":\"GPU-a\",\"score\":{\"GPU-b\":260,\"GPU-c\":10}},"
				       "{\"uuid\":\"GPU-b\",\"score\":{\"GPU-a\":260,\"GPU-c\":20}},"
				       "{\"uuid\":\"GPU-c\",\"score\":{\"GPU-a\":10,\"GPU-b\":20}}]";
	struct kube_scores scores;
	assert_int_equal(scores_parse(recorded, &scores, NULL), 0);
	assert_int_equal(scores.count, 3);
	assert_string_equal(scores.id[2], "GPU-c");
	assert_int_equal(scores.score[0 * 3 + 1], 260);
	assert_int_equal(scores.score[2 * 3 + 1], 20);
	assert_int_equal(scores.score[1 * 3 + 1], 0);
	char *text = scores_format(&scores);
	assert_string_equal(text, recorded);
	free(text);
	scores_free(&scores);
}

static void test_one_card(void **state)
{
	struct kube_scores scores;
	assert_int_equal(scores_new(1, &scores), 0);
	strcpy(scores.id[0], "GPU-a");
	char *text = scores_format(&scores);
	assert_string_equal(text, "[{\"uuid\":\"GPU-a\",\"score\":{}}]");
	free(text);
	scores_free(&scores);
}

static void bad(const char *text, const char *why)
{
	struct kube_scores scores;
	struct error err;
	assert_int_equal(scores_parse(text, &scores, &err), -22);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void test_bad(void **state)
{
	bad("", "must be a JSON array");
	bad("{}", "must be a JSON array");
	bad("[7]", "entry 1: uuid: must be a string");
	bad("[{\"uuid\":\"\"}]", "entry 1: uuid: must be");
	bad("[{\"uuid\":\"a\"},{\"uuid\":\"a\"}]", "entry 2: a: has an entry already");
	bad("[{\"uuid\":\"a\",\"score\":7}]", "a: score: must be an object");
	bad("[{\"uuid\":\"a\",\"score\":{\"b\":7}}]", "a: score: b: is not a GPU of the node");
	bad("[{\"uuid\":\"a\"},{\"uuid\":\"b\",\"score\":{\"a\":\"7\"}}]", "b: score: a: must be");
	bad("[{\"uuid\":\"a\"},{\"uuid\":\"b\",\"score\":{\"a\":-7}}]", "b: score: a: must be");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_there_and_back),
					    cmocka_unit_test(test_one_card),
					    cmocka_unit_test(test_bad) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
