/* What a reader of the cluster's page asks to see, and what it is told of it again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/page/state.h"
#include "scheduler/page/delta.h"
#include "scheduler/page/view.h"

/* "name=value", as many as there are, NULL at the end. */
static const char *argument(const void *data, const char *name)
{
	size_t length = strlen(name);
	for (const char *const *word = data; *word; word++)
		if (!strncmp(*word, name, length) && (*word)[length] == '=')
			return *word + length + 1;
	return NULL;
}

static void test_what_is_not_named(void **state)
{
	struct view view;
	struct error err = { 0 };
	const char *const none[] = { NULL };
	assert_int_equal(view_read(argument, none, &view, &err), 0);
	assert_string_equal(view.node, "");
	assert_string_equal(view.open, "");
	assert_int_equal(view.node_states, (1 << VIEW_NODE_STATES) - 1);
	assert_int_equal(view.pod_states, 1 << VIEW_WAITING | 1 << VIEW_RESERVED);
	assert_int_equal(view.order, VIEW_BY_NAME);
}

static void test_what_is_named(void **state)
{
	struct view view;
	struct error err = { 0 };
	const char *const words[] = { "node=gpu-1",      "namespace=a",     "open=n.example",
				      "node_state=full", "pod_state=all",   "order=memory",
				      "nodes_from=100",  "pods_from=20000", NULL };
	assert_int_equal(view_read(argument, words, &view, &err), 0);
	assert_string_equal(view.node, "gpu-1");
	assert_string_equal(view.pod_namespace, "a");
	assert_string_equal(view.open, "n.example");
	assert_int_equal(view.node_states, 1 << VIEW_FULL);
	assert_int_equal(view.pod_states, (1 << VIEW_POD_STATES) - 1);
	assert_int_equal(view.order, VIEW_BY_MEMORY);
	assert_int_equal(view.nodes_from, 100);
	assert_int_equal(view.pods_from, 20000);
}

static void test_what_can_not_be_meant(void **state)
{
	char longest[VIEW_TEXT_MAX + 16];
	snprintf(longest, sizeof(longest), "open=%0*d", VIEW_TEXT_MAX, 1);
	const struct {
		const char *word, *says;
	} cases[] = {
		{ "node=A",
		  "node: 'A': must be made of a-z, 0-9, '-' and '.', at most 253 characters" },
		{ "namespace=a/b", "namespace: 'a/b': must be made of a-z" },
		{ longest, "at most 253 characters" },
		{ "node_state=odd",
		  "node_state: 'odd': must be aside, unhealthy, cordoned, full, used or free" },
		{ "pod_state=odd", "pod_state: 'odd': must be waiting, reserved, bound or ending" },
		{ "order=", "order: '': must be name, memory, cores or shares" },
		{ "nodes_from=-1", "nodes_from: '-1': must be 0 to 20000" },
		{ "nodes_from=20001", "must be 0 to 20000" },
		{ "pods_from=1x", "pods_from: '1x': must be 0 to 20000" },
		{ "pods_from=99999999999999999999", "must be 0 to 20000" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const words[] = { cases[i].word, NULL };
		struct view view;
		struct error err = { 0 };
		assert_int_equal(view_read(argument, words, &view, &err), -EINVAL);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].word, err.text);
	}
}

/* ---- the first rows ---- */

static int by_number(const void *one, const void *other)
{
	const int *a = one, *b = other;
	return (*a > *b) - (*a < *b);
}

static void test_the_first_of_many(void **state)
{
	int number[200];
	for (size_t most = 0; most < 12; most++) {
		struct view_best best;
		assert_int_equal(view_best_new(&best, most, by_number), 0);
		for (int i = 0; i < 200; i++) {
			number[i] = i * 37 % 200; /* each once */
			view_best_add(&best, &number[i]);
		}
		assert_int_equal(best.seen, 200);
		assert_int_equal(best.count, most);
		for (size_t i = 0; i < best.count; i++)
			assert_int_equal(*(const int *)best.thing[i], i);
		view_best_free(&best);
	}
}

/* ---- what is told ---- */

static char *rows_told(struct sent_rows *told, const char *const *rows)
{
	struct delta_writer w;
	struct json_text t = { 0 };
	size_t count = 0;
	json_text_open(&t, NULL, '{');
	delta_rows_begin(&w, told);
	for (; rows[count]; count++) {
		char key[2] = { rows[count][0], '\0' };
		json_text_string(&w.row, NULL, rows[count]);
		delta_row(&w, key);
	}
	delta_rows_end(&w, "n", count, 0, &t);
	json_text_close(&t, '}');
	return json_text_end(&t);
}

static void assert_told(struct sent_rows *told, const char *const *rows, const char *wanted)
{
	char *text = rows_told(told, rows);
	assert_string_equal(text, wanted);
	free(text);
}

static void test_only_what_is_otherwise(void **state)
{
	struct sent_rows told = { 0 };
	const char *const first[] = { "a1", "b1", NULL }, *const changed[] = { "a1", "b2", NULL };
	const char *const turned[] = { "b2", "a1", NULL }, *const less[] = { "a1", NULL };
	const char *const none[] = { NULL };
	assert_told(&told, none, "{\"n\":{\"seen\":0,\"from\":0,\"keys\":[],\"rows\":[]}}");
	assert_told(&told, none, "{}");
	assert_told(
		&told, first,
		"{\"n\":{\"seen\":2,\"from\":0,\"keys\":[\"a\",\"b\"],\"rows\":[\"a1\",\"b1\"]}}");
	assert_told(&told, first, "{}");
	assert_told(&told, changed,
		    "{\"n\":{\"seen\":2,\"from\":0,\"keys\":[\"a\",\"b\"],\"rows\":[\"b2\"]}}");
	assert_told(&told, turned,
		    "{\"n\":{\"seen\":2,\"from\":0,\"keys\":[\"b\",\"a\"],\"rows\":[]}}");
	assert_told(&told, less, "{\"n\":{\"seen\":1,\"from\":0,\"keys\":[\"a\"],\"rows\":[]}}");
	/* It was away: it is told anew. */
	assert_told(&told, turned,
		    "{\"n\":{\"seen\":2,\"from\":0,\"keys\":[\"b\",\"a\"],\"rows\":[\"b2\"]}}");
}

static void test_a_part(void **state)
{
	uint64_t told = 0;
	for (int i = 0; i < 4; i++) {
		struct json_text part = { 0 }, t = { 0 };
		json_text_open(&t, NULL, '{');
		json_text_whole(&part, NULL, i / 2);
		assert_int_equal(delta_part(&told, "p", &part, &t), i % 2 == 0);
		json_text_close(&t, '}');
		char *text = json_text_end(&t);
		assert_string_equal(text, i == 0 ? "{\"p\":0}" : i == 2 ? "{\"p\":1}" : "{}");
		free(text);
	}
}

/* ---- a node's own page ---- */

static void test_a_nodes_address(void **state)
{
	char url[64], small[12];
	page_node_url("http://{node}:9401/", "n-1", url, sizeof(url));
	assert_string_equal(url, "http://n-1:9401/");
	page_node_url("https://gate/{node}/?n={node}", "n", url, sizeof(url));
	assert_string_equal(url, "https://gate/n/?n=n");
	page_node_url("http://{node}.example/", "n-1", small, sizeof(small));
	assert_string_equal(small, "http://n-1.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_named),
		cmocka_unit_test(test_what_is_named),
		cmocka_unit_test(test_what_can_not_be_meant),
		cmocka_unit_test(test_the_first_of_many),
		cmocka_unit_test(test_only_what_is_otherwise),
		cmocka_unit_test(test_a_part),
		cmocka_unit_test(test_a_nodes_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
