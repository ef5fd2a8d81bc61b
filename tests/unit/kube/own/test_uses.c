#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/own/uses.h"

#define CARD(id) "{\"id\":\"" id "\",\"peak\":41,\"now\":37,\"held\":80,\"mem\":12000}"

static void test_there_and_back(void **state)
{
	static const char text[] = "{\"t\":1790000000,\"cards\":[" CARD("GPU-a") "," CARD(
		"GPU-b") "]}";
	struct kube_uses uses;
	assert_int_equal(uses_parse(text, &uses, NULL), 0);
	assert_int_equal(uses.measured_s, 1790000000);
	assert_int_equal(uses.count, 2);
	assert_string_equal(uses.card[1].id, "GPU-b");
	assert_int_equal(uses.card[1].peak_pct, 41);
	assert_int_equal(uses.card[1].now_pct, 37);
	assert_int_equal(uses.card[1].held_pct, 80);
	assert_int_equal(uses.card[1].memory_mib, 12000);
	char *written = uses_format(&uses);
	assert_string_equal(written, text);
	free(written);
	uses_free(&uses);
	assert_int_equal(uses_parse("{\"t\":0,\"cards\":[]}", &uses, NULL), 0);
	assert_int_equal(uses.count, 0);
	uses_free(&uses);
}

static void bad(const char *text, const char *why)
{
	struct kube_uses uses;
	struct error err = { 0 };
	assert_int_equal(uses_parse(text, &uses, &err), -22);
	if (strncmp(err.text, "allot.dev/node-use: ", 20) != 0 || !strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void test_bad(void **state)
{
	bad("", "must be a JSON object");
	bad("[]", "must be a JSON object: it is another kind of JSON value");
	bad("{\"cards\":[]}", "t: must be a whole number from 0");
	bad("{\"t\":-1,\"cards\":[]}", "t: must be a whole number from 0");
	bad("{\"t\":1}", "\"cards\": must be an array");
	bad("{\"t\":1,\"cards\":{}}", "\"cards\": must be an array");
	bad("{\"t\":1,\"cards\":[1]}", "GPU 0: id: must be 1 to");
	bad("{\"t\":1,\"cards\":[" CARD("") "]}", "GPU 0: id: must be 1 to");
	bad("{\"t\":1,\"cards\":[" CARD("a") ",{\"id\":\"b\",\"peak\":1.5}]}",
	    "GPU 1: peak: must be a whole number");
	bad("{\"t\":1,\"cards\":[{\"id\":\"b\",\"peak\":10001}]}",
	    "peak: must be a whole number from 0 to 10000");
	bad("{\"t\":1,\"cards\":[{\"id\":\"b\",\"peak\":1,\"now\":1,\"held\":1,\"mem\":-1}]}",
	    "mem: must be");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_there_and_back),
					    cmocka_unit_test(test_bad) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
