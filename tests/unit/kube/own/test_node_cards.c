#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/own/node_cards.h"

#define USE(id) "{\"id\":\"" id "\",\"peak\":41,\"now\":37,\"held\":80,\"mem\":12000}"

static void test_uses(void **state)
{
	static const char text[] = "{\"t\":1790000000,\"cards\":[" USE("GPU-a") "," USE("GPU-b") "]}";
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

static void bad_uses(const char *text, const char *why)
{
	struct kube_uses uses;
	struct error err = { 0 };
	assert_int_equal(uses_parse(text, &uses, &err), -22);
	if (strncmp(err.text, "allot.dev/node-use: ", 20) != 0 || !strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void test_bad_uses(void **state)
{
	bad_uses("", "must be a JSON object");
	bad_uses("[]", "must be a JSON object: it is another kind of JSON value");
	bad_uses("{\"cards\":[]}", "t: must be a whole number from 0");
	bad_uses("{\"t\":-1,\"cards\":[]}", "t: must be a whole number from 0");
	bad_uses("{\"t\":1}", "\"cards\": must be an array");
	bad_uses("{\"t\":1,\"cards\":{}}", "\"cards\": must be an array");
	bad_uses("{\"t\":1,\"cards\":[1]}", "GPU 0: id: must be 1 to");
	bad_uses("{\"t\":1,\"cards\":[" USE("") "]}", "GPU 0: id: must be 1 to");
	bad_uses("{\"t\":1,\"cards\":[" USE("a") ",{\"id\":\"b\",\"peak\":1.5}]}",
		 "GPU 1: peak: must be a whole number");
	bad_uses("{\"t\":1,\"cards\":[{\"id\":\"b\",\"peak\":10001}]}",
		 "peak: must be a whole number from 0 to 10000");
	bad_uses("{\"t\":1,\"cards\":[{\"id\":\"b\",\"peak\":1,\"now\":1,\"held\":1,\"mem\":-1}]}",
		 "mem: must be");
}

#define COOLDOWN(id) "{\"id\":\"" id "\",\"until\":1790000600,\"rounds\":2}"

static void test_cooldowns(void **state)
{
	static const char text[] = "{\"cards\":[" COOLDOWN("GPU-a") "," COOLDOWN("GPU-b") "]}";
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

static void bad_cooldowns(const char *text, const char *why)
{
	struct kube_cooldowns cooldowns;
	struct error err = { 0 };
	assert_int_equal(cooldowns_parse(text, &cooldowns, &err), -22);
	if (strncmp(err.text, "allot.dev/node-shut: ", 21) != 0 || !strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void test_bad_cooldowns(void **state)
{
	bad_cooldowns("", "must be a JSON object");
	bad_cooldowns("[]", "must be a JSON object: it is another kind of JSON value");
	bad_cooldowns("{}", "\"cards\": must be an array");
	bad_cooldowns("{\"cards\":[" COOLDOWN("") "]}", "GPU 0: id: must be 1 to");
	bad_cooldowns("{\"cards\":[" COOLDOWN("a") ",{\"id\":\"b\",\"until\":-1,\"rounds\":1}]}",
		      "GPU 1: until: must be a whole number from 0");
	bad_cooldowns("{\"cards\":[{\"id\":\"b\",\"until\":\"soon\",\"rounds\":1}]}",
		      "until: must be");
	bad_cooldowns("{\"cards\":[{\"id\":\"b\",\"until\":1,\"rounds\":0}]}",
		      "rounds: must be a whole number from 1 to 255");
	bad_cooldowns("{\"cards\":[{\"id\":\"b\",\"until\":1,\"rounds\":256}]}", "rounds: must be");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_uses),
					    cmocka_unit_test(test_bad_uses),
					    cmocka_unit_test(test_cooldowns),
					    cmocka_unit_test(test_bad_cooldowns) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
