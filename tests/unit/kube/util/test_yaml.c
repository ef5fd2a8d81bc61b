#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/util/yaml.h"

static void good(const char *text, const char *as_json)
{
	struct error err = { 0 };
	json_t *value = NULL;
	if (yaml_parse(text, &value, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	char *json = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	assert_string_equal(json, as_json);
	free(json);
	json_decref(value);
}

static void bad(const char *text, const char *why)
{
	struct error err;
	json_t *value = NULL;
	assert_int_equal(yaml_parse(text, &value, &err), -22);
	assert_null(value);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void test_blocks(void **state)
{
	good("a: 1\nb:\n  c: x y\n  d: z\ne: f\n",
	     "{\"a\":\"1\",\"b\":{\"c\":\"x y\",\"d\":\"z\"},\"e\":\"f\"}");
	good("a:\n- b: 1\n  c: 2\n- b: 3\n", "{\"a\":[{\"b\":\"1\",\"c\":\"2\"},{\"b\":\"3\"}]}");
	good("a:\n  - b:\n      c: 1\n    d: 2\n  -\n    e: 3\n",
	     "{\"a\":[{\"b\":{\"c\":\"1\"},\"d\":\"2\"},{\"e\":\"3\"}]}");
	good("- a\n- \"b: c\"\n", "[\"a\",\"b: c\"]");
	good("a:\nb: ~\nc: null\n", "{\"a\":null,\"b\":null,\"c\":null}");
	good("  a: 1\n  b: 2\n", "{\"a\":\"1\",\"b\":\"2\"}");
	good("---\n# c\na: 1 # d\r\n\n...\nb: 2\n", "{\"a\":\"1\"}");
}

static void test_scalars(void **state)
{
	good("a: true\nb: false\nc: {}\nd: []\n", "{\"a\":true,\"b\":false,\"c\":{},\"d\":[]}");
	good("a: https://h:1/x#y\n", "{\"a\":\"https://h:1/x#y\"}");
	good("a: 'it''s # \"x\"' # y\n", "{\"a\":\"it's # \\\"x\\\"\"}");
	good("a: \"x\\n\\\"y\\\" # z\"\n", "{\"a\":\"x\\n\\\"y\\\" # z\"}");
	good("\"a b\": it's\n'c': \"\"\n", "{\"a b\":\"it's\",\"c\":\"\"}");
	good("\"a\\\": b\": 1\n'it''s: c': 2\n\"\\\\\": 3\n",
	     "{\"a\\\": b\":\"1\",\"it's: c\":\"2\",\"\\\\\":\"3\"}");
	good("{\"a\": [1, {\"b\": null}]}", "{\"a\":[1,{\"b\":null}]}");
}

static void test_bad(void **state)
{
	char deep[2000] = "";
	for (int i = 0; i < 40; i++) {
		memset(deep + strlen(deep), ' ', (size_t)i);
		strcat(deep, "a:\n");
	}
	bad("", "it is empty");
	bad("# only\n", "it is empty");
	bad("a: 1\n\tb: 2\n", "line 2: must be indented by spaces");
	bad("a: 1\nb\n", "line 2: must be 'key: value'");
	bad("a: 1\na: 2\n", "line 2: the key appears twice");
	bad("a: 1\n  b: 2\n", "line 2: is indented too far");
	bad("a:\n    b: 1\n  c: 2\n", "line 3: ");
	bad("  a: 1\nb: 2\n", "line 2: is indented less");
	bad("a: |\n  text\n", "line 1: this form of YAML");
	bad("a: &x 1\n", "line 1: this form");
	bad("a: [1, 2]\n", "line 1: this form");
	bad("a: \"x\n", "line 1: a quoted text must end");
	bad("a: 'x' y\n", "line 1: a quoted text must end");
	bad("a: \"\\q\"\n", "line 1: a quoted text must end");
	bad("-a\n", "line 1: must be");
	bad("\"a\\\": b\n", "line 1: must be 'key: value'");
	bad("a: \xff\n", "line 1: must be UTF-8");
	bad("{\"a\":", "line 1: ");
	bad(deep, "is nested too deeply");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_blocks),
					    cmocka_unit_test(test_scalars),
					    cmocka_unit_test(test_bad) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
