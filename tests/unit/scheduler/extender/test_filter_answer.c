/* An answer as JSON: what a JSON library reads of it is what was decided. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/extender/filter_answer.h"
#include "scheduler/util/json_quote.h"

static struct filter_answer *answer_to(json_t *args)
{
	struct call_args *call = call_args_of(args);
	assert_non_null(call);
	struct filter_answer *answer = filter_answer_new(call);
	assert_non_null(answer);
	call_args_put(call);
	return answer;
}

static void say(struct filter_answer *answer, size_t i, enum filter_list list, const char *why)
{
	answer->verdict[i].list = list;
	answer->fits += list == FILTER_FITS;
	if (why)
		assert_int_equal(filter_answer_add_reason(answer, why, &answer->verdict[i].reason),
				 0);
}

/* Gives both up. The members stand in the order in which HAMi has them. */
static void check(struct filter_answer *answer, json_t *expected)
{
	char *text = filter_answer_text(answer);
	assert_non_null(text);
	json_error_t why;
	json_t *got = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	if (!got)
		fail_msg("%s: %s", why.text, text);
	if (!json_equal(got, expected))
		fail_msg("%s", text);
	json_decref(got);
	json_decref(expected);
	free(text);
	filter_answer_put(answer);
}

static json_t *result(const char *nodes, const char *names, const char *failed,
		      const char *hopeless, const char *error)
{
	char text[4096];
	snprintf(text, sizeof(text),
		 "{\"Nodes\":%s,\"NodeNames\":%s,\"FailedNodes\":%s,"
		 "\"FailedAndUnresolvableNodes\":%s,\"Error\":%s}",
		 nodes, names, failed, hopeless, error);
	json_t *all = json_loads(text, 0, NULL);
	assert_non_null(all);
	return all;
}

static void test_by_names(void **state)
{
	struct filter_answer *answer = answer_to(
		json_pack("{s:[s,s,s,s,s,n]}", "NodeNames", "a", "b", "c", "d", "e"));
	say(answer, 0, FILTER_FITS, NULL);
	say(answer, 1, FILTER_FAILED, "8/8 CardInsufficientMemory");
	say(answer, 2, FILTER_UNRESOLVABLE, "node unregistered");
	say(answer, 3, FILTER_FITS, NULL);
	say(answer, 4, FILTER_FAILED, "8/8 CardInsufficientMemory");
	assert_int_equal(answer->reasons, 2);
	check(answer, result("null", "[\"a\",\"d\"]",
			     "{\"b\":\"8/8 CardInsufficientMemory\",\"e\":\"8/8 "
			     "CardInsufficientMemory\"}",
			     "{\"c\":\"node unregistered\"}", "\"\""));
	check(answer_to(json_object()), result("null", "[]", "{}", "{}", "\"\""));
	answer = answer_to(json_pack("{s:[s]}", "NodeNames", "a"));
	strcpy(answer->error, "Pod: \"x\": must be an object");
	check(answer, result("null", "[]", "{}", "{}", "\"Pod: \\\"x\\\": must be an object\""));
}

static void test_whole(void **state)
{
	json_t *args = json_loads("{\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"a\",\"x\":1}},"
				  "{\"metadata\":{\"name\":\"b\"}},{}]}}",
				  0, NULL);
	struct filter_answer *answer = answer_to(args);
	assert_int_equal(answer->args->count, 3);
	assert_null(answer->args->name[2].text);
	say(answer, 0, FILTER_FITS, NULL);
	say(answer, 1, FILTER_UNRESOLVABLE, "node unregistered");
	check(answer, result("{\"items\":[{\"metadata\":{\"name\":\"a\",\"x\":1}}]}", "null", "{}",
			     "{\"b\":\"node unregistered\"}", "\"\""));
	answer = answer_to(json_loads("{\"Nodes\":{\"items\":[]}}", 0, NULL));
	check(answer, result("{\"items\":[]}", "null", "{}", "{}", "\"\""));
	answer = answer_to(json_loads("{\"Nodes\":{}}", 0, NULL));
	check(answer, result("null", "[]", "{}", "{}", "\"\""));
}

/* Names and reasons of any bytes that a text may have, and reasons of some that it may not. */
static void test_what_needs_care(void **state)
{
	static const char odd[] = "\"\\/\b\f\n\r\t\x01\x1f\x7f\xc3\xa4\xe2\x82\xac<>&'";
	struct filter_answer *answer = answer_to(
		json_pack("{s:[s,s,s,s]}", "NodeNames", odd, "b", "c", ""));
	json_t *expected = result("null", "[]", "{}", "{}", "\"\"");
	say(answer, 0, FILTER_FITS, NULL);
	json_array_append_new(json_object_get(expected, "NodeNames"), json_string(odd));
	say(answer, 1, FILTER_FAILED, "\"\\/\xe2\x82\xac");
	json_object_set_new(json_object_get(expected, "FailedNodes"), "b",
			    json_string("\"\\/\xe2\x82\xac"));
	/* As where an error's text was cut. */
	say(answer, 2, FILTER_FAILED, "a\nb \xe2\x82");
	json_object_set_new(json_object_get(expected, "FailedNodes"), "c", json_string("a?b ??"));
	say(answer, 3, FILTER_UNRESOLVABLE, "");
	json_object_set_new(json_object_get(expected, "FailedAndUnresolvableNodes"), "",
			    json_string(""));
	check(answer, expected);
}

/* As many reasons as nodes, each its own. */
static void test_many_reasons(void **state)
{
	const size_t count = 3000;
	json_t *names = json_array(), *expected = result("null", "[]", "{}", "{}", "\"\"");
	for (size_t i = 0; i < count; i++) {
		char name[32];
		snprintf(name, sizeof(name), "n%zu", i);
		json_array_append_new(names, json_string(name));
	}
	struct filter_answer *answer = answer_to(json_pack("{s:o}", "NodeNames", names));
	for (size_t i = 0; i < count; i++) {
		char why[64];
		bool is_hopeless = i % 3 == 0;
		snprintf(why, sizeof(why), "%zu/%zu %0*zu", i, count, (int)(i % 40), i);
		say(answer, i, is_hopeless ? FILTER_UNRESOLVABLE : FILTER_FAILED, why);
		json_object_set_new(json_object_get(expected, is_hopeless
								      ? "FailedAndUnresolvableNodes"
								      : "FailedNodes"),
				    answer->args->name[i].text, json_string(why));
	}
	assert_int_equal(answer->reasons, count);
	check(filter_answer_get(answer), expected);
	assert_string_equal(filter_answer_reason(answer, 1), "1/3000 1");
	filter_answer_put(answer);
	filter_answer_put(NULL);
}

static void test_quote_size(void **state)
{
	for (int c = 1; c < 256; c++) {
		char text[4] = { 'a', (char)c, 'b' }, to[16];
		char *end = json_quote(to, text, 3);
		assert_int_equal(end - to, json_quote_size(text, 3));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_names),        cmocka_unit_test(test_whole),
		cmocka_unit_test(test_what_needs_care), cmocka_unit_test(test_many_reasons),
		cmocka_unit_test(test_quote_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
