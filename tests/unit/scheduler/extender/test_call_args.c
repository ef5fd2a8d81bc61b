/* What came with a call: names as they stand in the text, and of any text what jansson says of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "kube/util/untrusted_json.h"
#include "scheduler/extender/call_args.h"

#define MUTATIONS 300000
#define MUTATED_MAX 256

static const char *name_in(const json_t *list, size_t i)
{
	return json_string_value(json_array_get(list, i));
}

/* What is not the list of names is the same, and the names are. */
static void check_same(const struct call_args *args, const json_t *all)
{
	const json_t *nodes = json_object_get(all, "Nodes");
	const json_t *names = json_object_get(all, "NodeNames");
	assert_false(args->is_by_names && args->whole);
	for (const char *const *member = (const char *const[]){ "Pod", "Nodes", "Other", NULL };
	     *member; member++) {
		const json_t *one = json_object_get(all, *member);
		const json_t *other = json_object_get(args->object, *member);
		assert_true(!one == !other && (!one || json_equal(one, other)));
	}
	if (json_is_object(nodes)) {
		assert_false(args->is_by_names);
		assert_int_equal(args->count, json_array_size(json_object_get(nodes, "items")));
		return;
	}
	assert_int_equal(args->is_by_names, json_is_array(names) || json_is_null(names));
	assert_int_equal(args->count, json_array_size(names));
	for (size_t i = 0; i < args->count; i++) {
		const char *name = name_in(names, i);
		assert_true(!name == !args->name[i].text);
		if (!name)
			continue;
		assert_string_equal(args->name[i].text, name);
		assert_int_equal(args->name[i].length, strlen(name));
	}
}

/* Whether it is JSON. The text is given so that a byte too many would be seen. */
static bool is_read_as_jansson_does(const char *text, size_t size)
{
	struct call_args *args = NULL;
	struct error err = { 0 };
	json_error_t why;
	char *own = malloc(size ? size : 1), line[ERROR_TEXT_MAX];
	memcpy(own, text, size);
	json_t *all = untrusted_json_parse(own, size, JSON_REJECT_DUPLICATES, &why);
	int r = call_args_read(own, size, &args, &err);
	free(own);
	if (!all) {
		snprintf(line, sizeof(line), "line %d: %s", why.line, why.text);
		assert_int_equal(r, -EINVAL);
		assert_null(args);
		text_clean(line);
		assert_string_equal(err.text, line);
		return false;
	}
	assert_int_equal(r, 0);
	check_same(args, all);
	call_args_put(args);
	json_decref(all);
	return true;
}

static bool is_read(const char *text)
{
	return is_read_as_jansson_does(text, strlen(text));
}

static const char *const good[] = {
	"{\"Pod\":{\"a\":[1,{}]},\"Nodes\":null,\"NodeNames\":[\"a\",\"b.c-d\",\"e\"]}",
	"{\"NodeNames\":[\"a,b\",\"[\",\"}\",\":\",\" \"],\"Pod\":{\"NodeNames\":[\"x\"]}}",
	" {\n\"NodeNames\" \t: \r[ \"a\" ,\n\"b\"\t] , \"Other\" : \"\\\"NodeNames\\\":[\" } ",
	"{\"NodeNames\":[]}",
	"{\"NodeNames\":[ ]}",
	"{\"NodeNames\":[\"\"]}",
	"{\"NodeNames\":null,\"Pod\":7}",
	"{\"NodeNames\":[\"a\",7,null,\"b\",[\"c\"],{\"d\":1}]}",
	"{\"NodeNames\":[\"a\\n\",\"\\u0000\",\"b\\u0000c\",\"\\u00e4\",\"\xc3\xa4\",\"\x7f\"]}",
	"{\"\\u004eodeNames\":[\"a\",\"b\"]}",
	"{\"NodeNames\":{\"a\":[\"b\"]}}",
	"{\"NodeNames\":[[\"a\"]]}",
	"{\"Other\":\"NodeNames\",\"Pod\":[\"NodeNames\",[\"a\"]]}",
	"{\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n\"}},7]},\"NodeNames\":[\"a\"]}",
	"{\"NodeNames\":[\"a\"],\"Nodes\":{}}",
	"{\"nodenames\":[\"a\"]}",
	"[{\"NodeNames\":[\"a\"]}]",
	"[]",
	"{}",
};

static const char *const bad[] = {
	"",
	" ",
	"7",
	"\"NodeNames\"",
	"{\"NodeNames\":[\"a\"]",
	"{\"NodeNames\":[\"a\"",
	"{\"NodeNames\":[\"a",
	"{\"NodeNames\":[\"a\",",
	"{\"NodeNames\":[\"a\",]}",
	"{\"NodeNames\":[,\"a\"]}",
	"{\"NodeNames\":[\"a\"\"b\"]}",
	"{\"NodeNames\":[\"a\"}}",
	"{\"NodeNames\":[\"a\"]]}",
	"{\"NodeNames\":[\"a\"]}}",
	"{\"NodeNames\":[\"a\"]} x",
	"{\"NodeNames\":[\"a\"],}",
	"{\"NodeNames\":[\"a\"],\"Pod\":}",
	"{\"NodeNames\":[\"a\"],\"NodeNames\":[\"a\"]}",
	"{\"NodeNames\":[\"a\"],\"\\u004eodeNames\":[]}",
	"{\"NodeNames\":[],\"Pod\":{\"a\":1,\"a\":2}}",
	"{\"Pod\":1,\"Pod\":2,\"NodeNames\":[\"a\"]}",
	"{\"NodeNames\":[\"a\xff\"]}",
	"{\"NodeNames\":[\"a\"],\"Pod\":\"\xc0\x80\"}",
	"{\"NodeNames\":[\"a\nb\"]}",
	"{\"NodeNames\":[\"\\x\"]}",
	"{\"NodeNames\":[\"\\ud800\"]}",
	"{'NodeNames':[\"a\"]}",
	"{,\"NodeNames\":[\"a\"]}",
	"}{\"NodeNames\":[\"a\"]}",
	"[\"NodeNames\":[\"a\"]]",
	"{\"a\"}{\"NodeNames\":[\"a\"]}",
	"\xef\xbb\xbf{\"NodeNames\":[\"a\"]}",
};

static void test_texts(void **state)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!is_read(good[i]))
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (is_read(bad[i]))
			fail_msg("%s", bad[i]);
	assert_false(is_read_as_jansson_does("{\"NodeNames\":[\"a\"],\"P\":\"\0\"}", 28));
}

/* As deep as jansson goes, and deeper. */
static void test_depth(void **state)
{
	for (size_t deep = 2040; deep < 2056; deep++) {
		char text[2 * 2056 + 64];
		int at = snprintf(text, sizeof(text), "{\"NodeNames\":[\"a\"],\"Pod\":");
		memset(text + at, '[', deep);
		memset(text + at + deep, ']', deep);
		strcpy(text + at + 2 * deep, "}");
		assert_int_equal(is_read(text), deep < 2048);
	}
}

/* Every beginning of what is good, and what becomes of it by some bytes changed, cut out, or doubled. */
static void test_mutations(void **state)
{
	static const char bytes[] = "\"\"\"\\[]{}:,, \n\tnulNode7\xc3\xa4\x01\x7f\0";
	const size_t texts = sizeof(good) / sizeof(good[0]);
	unsigned accepted = 0;
	for (size_t i = 0; i < texts; i++)
		for (size_t size = 0; size < strlen(good[i]); size++)
			is_read_as_jansson_does(good[i], size);
	srandom(7);
	for (unsigned k = 0; k < MUTATIONS; k++) {
		char text[MUTATED_MAX];
		const char *from = good[(size_t)random() % texts];
		size_t size = strlen(from);
		memcpy(text, from, size);
		for (long n = 1 + random() % 3; n > 0 && size; n--) {
			size_t at = (size_t)random() % size;
			char byte = bytes[(size_t)random() % (sizeof(bytes) - 1)];
			switch (random() % 3) {
			case 0: text[at] = byte; break;
			case 1: memmove(text + at, text + at + 1, --size - at); break;
			default:
				memmove(text + at + 1, text + at, size++ - at);
				text[at] = random() % 2 ? byte : text[at];
			}
		}
		accepted += is_read_as_jansson_does(text, size);
	}
	/* Neither are all of them wrong, nor none. */
	assert_in_range(accepted, MUTATIONS / 50, MUTATIONS / 2);
}

/* However many there are, each where it stood; and they outlive the text. */
static void test_many_names(void **state)
{
	const size_t count = 5000;
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++) {
		char name[32];
		snprintf(name, sizeof(name), "node-%zu", i);
		json_array_append_new(list, json_string(name));
	}
	json_t *all = json_pack("{s:{s:s},s:n,s:O}", "Pod", "a", "b", "Nodes", "NodeNames", list);
	char *text = json_dumps(all, 0);
	struct call_args *args, *same;
	assert_int_equal(call_args_read(text, strlen(text), &args, NULL), 0);
	memset(text, 'x', strlen(text));
	free(text);
	check_same(args, all);
	/* It was taken as it stands. */
	assert_null(json_object_get(args->object, "NodeNames"));
	same = call_args_get(args);
	call_args_put(args);
	json_t *names = call_args_names(same);
	assert_true(json_equal(names, list));
	json_decref(names);
	call_args_put(same);
	call_args_put(NULL);
	json_decref(all);
	json_decref(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_many_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
