/* What nodes say of their cards, and those that can't mean it. */
#include <errno.h>

#include "../cluster.h"
#include "scheduler/model/model_inside.h"
#include "verbs.h"

#define CARD(id, rest) \
	"{\"id\":\"" id "\",\"count\":10,\"devmem\":8192,\"devcore\":100," \
	"\"type\":\"NVIDIA-A\"" rest "}"
#define WELL(id) CARD(id, ",\"health\":true")

static void test_forms(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m, node_saying("json", "[" WELL("GPU-a") "," CARD("GPU-b", "") "]", "GPU-a"));
	give_node(m, node_saying("old", "GPU-c,5,16384,200,NVIDIA-B,1,true:", NULL));
	give_node(m, node_saying("bare", NULL, NULL));
	struct place_card a = card_of(m, "GPU-a"), b = card_of(m, "GPU-b"), c = card_of(m, "GPU-c");
	assert_true(a.is_cordoned && !a.is_sick);
	assert_true(!b.is_cordoned && b.is_sick);
	assert_int_equal(c.memory_total_bytes, UINT64_C(16384) << 20);
	assert_int_equal(c.cores_total_mpct, 200000);
	assert_int_equal(c.slots_total, 5);
	assert_int_equal(c.numa, 1);
	struct model_counts counts = model_counts(m);
	assert_int_equal(counts.nodes, 2);
	assert_int_equal(counts.cards, 3);
	assert_int_equal(counts.nodes_rejected, 0);
	model_free(m);
}

static void test_lies(void **state)
{
	static const char *const rows[][2] = {
		{ "[",
		  "node n gets no pods with GPUs until its list of GPUs is corrected: hami.io/node-nvidia-register: must be a JSON array: " },
		{ "[" WELL("GPU-a") "," WELL("GPU-a") "]",
		  "node n gets no pods with GPUs until its list of GPUs is corrected: hami.io/node-nvidia-register: GPU 1, GPU-a: is also the id of GPU 0" },
		{ "[" WELL("GPU-a;") "]",
		  "node n gets no pods with GPUs until its list of GPUs is corrected: hami.io/node-nvidia-register: GPU 0, GPU-a;: id: "
		  "must not contain spaces, ',', ':' or ';'" },
		{ "[{\"id\":\"GPU-a\",\"count\":10,\"devcore\":100,\"health\":true}]",
		  "node n gets no pods with GPUs until its list of GPUs is corrected: hami.io/node-nvidia-register: GPU 0, GPU-a: devmem: 0: "
		  "must "
		  "be 100 to 16777216" },
		{ "[{\"id\":\"GPU-a\",\"count\":10,\"devmem\":20000000,\"devcore\":100,"
		  "\"health\":true}]",
		  "node n gets no pods with GPUs until its list of GPUs is corrected: hami.io/node-nvidia-register: GPU 0, GPU-a: devmem: "
		  "20000000: must be 100 to 16777216" },
		{ "[{\"id\":\"GPU-a\",\"count\":10,\"devmem\":8192,\"health\":true}]",
		  "node n gets no pods with GPUs until its list of GPUs is corrected: hami.io/node-nvidia-register: GPU 0, GPU-a: devcore: 0: "
		  "must "
		  "be 1 to 10000" },
		{ "[{\"id\":\"GPU-a\",\"devmem\":8192,\"devcore\":100,\"health\":true}]",
		  "node n gets no pods with GPUs until its list of GPUs is corrected: hami.io/node-nvidia-register: GPU 0, GPU-a: count: 0: "
		  "must "
		  "be 1 to 10000" },
		{ "[{\"id\":\"GPU-a\",\"count\":-1}]",
		  "node n gets no pods with GPUs until its list of GPUs is corrected: hami.io/node-nvidia-register: GPU 0: count: must be a "
		  "whole "
		  "number from 0 to 2147483647" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model *m = model_of_nothing();
		struct error err = { 0 };
		json_t *node = node_saying("n", rows[i][0], NULL);
		assert_int_equal(model_update_node(m, node, &err), -EINVAL);
		if (strncmp(err.text, rows[i][1], strlen(rows[i][1])) != 0)
			fail_msg("%s", err.text);
		/* It is said once, not with each sign of life. */
		assert_int_equal(model_update_node(m, node, &err), 0);
		assert_int_equal(model_counts(m).nodes_rejected, 1);
		json_t *args = filter_args(pod_object("a", GPU), "n");
		json_t *answer = verbs_filter(m, args);
		assert_string_equal(fitting(answer), "");
		assert_string_equal(
			reason_of(answer, "n"),
			err.text +
				strlen("node n gets no pods with GPUs until its list of GPUs is corrected: "));
		json_decref(args);
		json_decref(answer);
		/* Once it tells the truth, it is taken back. */
		give_node(m, node_object("n", 1, 8192, 100));
		assert_int_equal(model_counts(m).nodes_rejected, 0);
		assert_int_equal(model_counts(m).cards, 1);
		json_decref(node);
		model_free(m);
	}
}

static void test_too_many_cards(void **state)
{
	struct model *m = model_of_nothing();
	struct error err;
	json_t *node = node_object("n", PLACE_MAX_CARDS + 1, 8192, 100);
	give_node(m, node_object("n", PLACE_MAX_CARDS, 8192, 100));
	assert_int_equal(model_update_node(m, node, &err), -EINVAL);
	assert_string_equal(
		err.text,
		"node n gets no pods with GPUs until its list of GPUs is corrected: 65 GPUs: must be at most 64");
	assert_int_equal(model_counts(m).cards, 0);
	json_decref(node);
	model_free(m);
}

/* What a node's pods have is counted on whatever cards it has, from whichever came first. */
static void test_cards_change(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = pod_object("a", GPU);
	allocate(pod, "n", "n-0,NVIDIA,1000,20:n-7,NVIDIA,2000,30:;", "success", true);
	give_pod(m, pod);
	give_node(m, node_object("n", 2, 8192, 100));
	assert_int_equal(card_of(m, "n-0").memory_used_bytes, UINT64_C(1000) << 20);
	assert_int_equal(card_of(m, "n-1").slots_used, 0);
	give_node(m, node_object("n", 8, 8192, 100));
	assert_int_equal(card_of(m, "n-0").memory_used_bytes, UINT64_C(1000) << 20);
	assert_int_equal(card_of(m, "n-7").cores_used_mpct, 30000);
	model_remove_node(m, "n");
	assert_int_equal(model_counts(m).cards, 0);
	assert_int_equal(model_counts(m).pods, 1);
	give_node(m, node_object("n", 1, 8192, 100));
	assert_int_equal(card_of(m, "n-0").cores_used_mpct, 20000);
	pod = pod_object("a", GPU);
	model_remove_pod(m, pod);
	json_decref(pod);
	assert_int_equal(card_of(m, "n-0").slots_used, 0);
	assert_int_equal(card_of(m, "n-0").memory_used_bytes, 0);
	model_free(m);
}

/* A list ends what it does not name. */
static void test_lists(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("a", 1, 8192, 100));
	give_node(m, node_object("b", 1, 8192, 100));
	model_list_begin(m, MODEL_NODES);
	give_node(m, node_object("b", 1, 8192, 100));
	assert_int_equal(model_counts(m).nodes, 2);
	model_list_end(m, MODEL_NODES);
	assert_int_equal(model_counts(m).nodes, 1);
	assert_non_null(model_find_node(m, "b"));
	assert_null(model_find_node(m, "a"));
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),          cmocka_unit_test(test_lies),
		cmocka_unit_test(test_too_many_cards), cmocka_unit_test(test_cards_change),
		cmocka_unit_test(test_lists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
