/* Events of filter, in HAMi's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sched/filter_words.h"

static struct filter_say says[FILTER_SAYS_MOST];

static unsigned say(const char *failed, const char *hopeless)
{
	char text[4096];
	snprintf(text, sizeof(text), "{\"FailedNodes\":%s,\"FailedAndUnresolvableNodes\":%s}",
		 failed, hopeless);
	json_t *answer = json_loads(text, 0, NULL);
	assert_non_null(answer);
	memset(says, 'x', sizeof(says));
	unsigned count = filter_says(answer, says);
	json_decref(answer);
	return count;
}

static void test_a_reason_an_event(void **state)
{
	assert_int_equal(say("{\"b\":\"2/8 CardInsufficientMemory, 6/8 CardNotHealth\","
			     "\"a\":\"8/8 CardInsufficientMemory\"}",
			     "{\"c\":\"1/1 CardTypeMismatch\",\"d\":\"node unregistered\"}"),
			 5);
	assert_string_equal(says[0].text, "2 nodes CardInsufficientMemory(a,b)");
	assert_string_equal(says[0].word, "CardInsufficientMemory");
	assert_string_equal(says[1].text, "1 nodes CardNotHealth(b)");
	assert_string_equal(says[2].text, "1 nodes CardTypeMismatch(c)");
	assert_string_equal(says[3].text, "1 nodes node unregistered(d)");
	assert_string_equal(says[4].text, "no available node, 4 nodes do not meet");
	assert_string_equal(says[4].word, "");
}

static void test_what_is_no_count_is_one_reason(void **state)
{
	assert_int_equal(say("{}", "{\"a\":\"gang t: room for 3 of 4, and more\",\"b\":\"3/ x\","
				   "\"c\":\"/8 y\",\"d\":7}"),
			 4);
	assert_string_equal(says[0].text, "1 nodes /8 y(c)");
	assert_string_equal(says[1].text, "1 nodes 3/ x(b)");
	assert_string_equal(says[2].text, "1 nodes gang t: room for 3 of 4, and more(a)");
	assert_string_equal(says[3].text, "no available node, 3 nodes do not meet");
	assert_int_equal(say("{}", "{}"), 1);
	assert_string_equal(says[0].text, "no available node, 0 nodes do not meet");
	assert_int_equal(say("{\"a\":\"\"}", "null"), 2);
	assert_string_equal(says[0].text, "1 nodes (a)");
}

/* However many nodes and reasons there are, and however long their names. */
static void test_bounds(void **state)
{
	json_t *failed = json_object(), *answer;
	char name[300], why[400];
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "%0*u", i % 2 ? 253 : 5, 3000 - i);
		snprintf(why, sizeof(why), "1/1 Reason%u%0*u", i % 40, i % 3 ? 1 : 200, 0);
		json_object_set_new(failed, name, json_string(why));
	}
	answer = json_pack("{s:o}", "FailedNodes", failed);
	memset(says, 'x', sizeof(says));
	assert_int_equal(filter_says(answer, says), FILTER_SAYS_MOST);
	for (unsigned i = 0; i < FILTER_SAYS_MOST; i++) {
		assert_non_null(memchr(says[i].text, 0, FILTER_TEXT_MAX));
		assert_non_null(memchr(says[i].word, 0, FILTER_WORD_MAX));
	}
	assert_non_null(strstr(says[0].text, ",...)"));
	assert_string_equal(says[4].text, "no available node, 3000 nodes do not meet");
	json_decref(answer);
}

/* The first by name, in whichever order they come: the same text is the same event. */
static void test_names_are_in_order(void **state)
{
	json_t *up = json_object(), *down = json_object();
	for (unsigned i = 0; i < 20; i++) {
		char low[8], high[8];
		snprintf(low, sizeof(low), "n%02u", i);
		snprintf(high, sizeof(high), "n%02u", 19 - i);
		json_object_set_new(up, low, json_string("8/8 CardNotHealth"));
		json_object_set_new(down, high, json_string("8/8 CardNotHealth"));
	}
	json_t *answers[] = { json_pack("{s:o}", "FailedNodes", up),
			      json_pack("{s:o}", "FailedNodes", down) };
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(filter_says(answers[i], says), 2);
		assert_string_equal(says[0].text,
				    "20 nodes CardNotHealth(n00,n01,n02,n03,n04,n05,n06,"
				    "n07,...)");
		json_decref(answers[i]);
	}
}

static void test_success(void **state)
{
	char text[FILTER_TEXT_MAX], name[300];
	filter_success_text("a", 12.5, 1, 2, text, sizeof(text));
	assert_string_equal(text, "find fit node(a), 2 nodes not fit, 1 nodes fit(a:12.50)");
	filter_success_text("a", 0, 7, 0, text, sizeof(text));
	assert_string_equal(text, "find fit node(a), 0 nodes not fit, 7 nodes fit(a:0.00,...)");
	memset(name, 'n', sizeof(name));
	name[299] = '\0';
	filter_success_text(name, 0, 7, 0, text, sizeof(text));
	assert_non_null(strstr(text, ":0.00,...)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_reason_an_event),
		cmocka_unit_test(test_what_is_no_count_is_one_reason),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_names_are_in_order),
		cmocka_unit_test(test_success),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
