#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/own/cooldowns.h"

#define CARD(id) "{\"id\":\"" id "\",\"until\":1790000600,\"rounds\":2}"

static void test_there_and_back(void **state)
{
	static const char text[] = "{\"cards\":[" CARD("GPU-a") "," CARD("GPU-b") "]}";
	struct kube_cooldowns cooldowns;
	assert_int_equal(cooldowns_parse(text, &cooldowns, NULL), 0);
	assert_int_equal(cooldowns.count, 2);
	assert_string_equal(cooldowns.card[1].id, "GPU-b");
	assert_int_equal(cooldowns.card[1].until_s, 1790000600);
	assert_int_equal(cooldowns.card[1].rounds, 2);
	char *written = cooldowns_format(&cooldowns);
	assert_string_equal(written, text);
	free(written);
	cooldowns_free(&cooldowns);
	assert_int_equal(cooldowns_parse("{\"cards\":[]}", &cooldowns, NULL), 0);
	assert_int_equal(cooldowns.count, 0);
	cooldowns_free(&cooldowns);
}

static void bad(const char *text, const char *why)
{
	struct kube_cooldowns cooldowns;
	struct error err = { 0 };
	assert_int_equal(cooldowns_parse(text, &cooldowns, &err), -22);
	if (strncmp(err.text, "allot.dev/node-shut: ", 21) != 0 || !strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void test_bad(void **state)
{
	bad("", "must be a JSON object");
	bad("[]", "must be a JSON object: it is another kind of JSON value");
	bad("{}", "\"cards\": must be an array");
	bad("{\"cards\":[" CARD("") "]}", "GPU 0: id: must be 1 to");
	bad("{\"cards\":[" CARD("a") ",{\"id\":\"b\",\"until\":-1,\"rounds\":1}]}",
	    "GPU 1: until: must be a whole number from 0");
	bad("{\"cards\":[{\"id\":\"b\",\"until\":\"soon\",\"rounds\":1}]}", "until: must be");
	bad("{\"cards\":[{\"id\":\"b\",\"until\":1,\"rounds\":0}]}",
	    "rounds: must be a whole number from 1 to 255");
	bad("{\"cards\":[{\"id\":\"b\",\"until\":1,\"rounds\":256}]}", "rounds: must be");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_there_and_back),
					    cmocka_unit_test(test_bad) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
