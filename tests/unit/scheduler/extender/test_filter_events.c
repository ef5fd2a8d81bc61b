/* Events of filter, in HAMi's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/extender/filter_events.h"

static struct filter_event says[FILTER_EVENTS_MAX];

static void add(struct filter_answer *answer, size_t *at, enum filter_list list, const json_t *nodes)
{
	const char *name;
	json_t *why;
	json_object_foreach((json_t *)(uintptr_t)nodes, name, why)
	{
		struct filter_verdict *verdict = &answer->verdict[(*at)++];
		verdict->list = list;
		assert_int_equal(filter_answer_add_reason(answer, json_string_value(why),
							  &verdict->reason),
				 0);
	}
}

static void add_names(json_t *list, const json_t *nodes)
{
	const char *name;
	json_t *why;
	json_object_foreach((json_t *)(uintptr_t)nodes, name, why)
		json_array_append_new(list, json_string(name));
}

/* Nodes and why they are not fit; both objects are given up. A node before them fits. */
static unsigned say_of(json_t *failed, json_t *hopeless)
{
	json_t *names = json_pack("[s]", "fits");
	size_t at = 1;
	add_names(names, failed);
	add_names(names, hopeless);
	struct call_args *args = call_args_of(json_pack("{s:o}", "NodeNames", names));
	assert_non_null(args);
	struct filter_answer *answer = filter_answer_new(args);
	assert_non_null(answer);
	answer->verdict[0].list = FILTER_FITS;
	add(answer, &at, FILTER_FAILED, failed);
	add(answer, &at, FILTER_UNRESOLVABLE, hopeless);
	memset(says, 'x', sizeof(says));
	unsigned count = filter_failure_events(answer, says);
	filter_answer_put(answer);
	call_args_put(args);
	json_decref(failed);
	json_decref(hopeless);
	return count;
}

static unsigned say(const char *failed, const char *hopeless)
{
	return say_of(json_loads(failed, 0, NULL), json_loads(hopeless, 0, NULL));
}

static void test_a_reason_an_event(void **state)
{
	assert_int_equal(say("{\"b\":\"2/8 CardInsufficientMemory, 6/8 CardNotHealth\","
			     "\"a\":\"8/8 CardInsufficientMemory\"}",
			     "{\"c\":\"1/1 CardTypeMismatch\",\"d\":\"node unregistered\"}"),
			 5);
	assert_string_equal(says[0].text, "2 nodes CardInsufficientMemory(a,b)");
	assert_string_equal(says[0].reason, "CardInsufficientMemory");
	assert_string_equal(says[1].text, "1 nodes CardNotHealth(b)");
	assert_string_equal(says[2].text, "1 nodes CardTypeMismatch(c)");
	assert_string_equal(says[3].text, "1 nodes node unregistered(d)");
	assert_string_equal(says[4].text, "no available node, 4 nodes do not meet");
	assert_string_equal(says[4].reason, "");
}

static void test_what_is_no_count_is_one_reason(void **state)
{
	assert_int_equal(say("{}", "{\"a\":\"gang t: room for 3 of 4, and more\",\"b\":\"3/ x\","
				   "\"c\":\"/8 y\"}"),
			 4);
	assert_string_equal(says[0].text, "1 nodes /8 y(c)");
	assert_string_equal(says[1].text, "1 nodes 3/ x(b)");
	assert_string_equal(says[2].text, "1 nodes gang t: room for 3 of 4, and more(a)");
	assert_string_equal(says[3].text, "no available node, 3 nodes do not meet");
	assert_int_equal(say("{}", "{}"), 1);
	assert_string_equal(says[0].text, "no available node, 0 nodes do not meet");
	assert_int_equal(say("{\"a\":\"\"}", "{}"), 2);
	assert_string_equal(says[0].text, "1 nodes (a)");
}

/* However many nodes and reasons there are, and however long their names. */
static void test_bounds(void **state)
{
	json_t *failed = json_object();
	char name[300], why[400];
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "%0*u", i % 2 ? 253 : 5, 3000 - i);
		snprintf(why, sizeof(why), "1/1 Reason%u%0*u", i % 40, i % 3 ? 1 : 200, 0);
		json_object_set_new(failed, name, json_string(why));
	}
	assert_int_equal(say_of(failed, json_object()), FILTER_EVENTS_MAX);
	for (unsigned i = 0; i < FILTER_EVENTS_MAX; i++) {
		assert_non_null(memchr(says[i].text, 0, FILTER_TEXT_MAX));
		assert_non_null(memchr(says[i].reason, 0, FILTER_REASON_MAX));
	}
	assert_non_null(strstr(says[0].text, ",...)"));
	assert_string_equal(says[4].text, "no available node, 3000 nodes do not meet");
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
	json_t *both[] = { up, down };
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(say_of(both[i], json_object()), 2);
		assert_string_equal(says[0].text,
				    "20 nodes CardNotHealth(n00,n01,n02,n03,n04,n05,n06,"
				    "n07,...)");
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
