/* Evictions that do not succeed: the test is the API server. */
#include "../cluster.h"
#include "verbs.h"

#include "../../fake_kube.h"
#include "scheduler/cluster/evictor.h"

#define S UINT64_C(1000000000)
#define CARD "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"8192\""

static bool leads(void *data)
{
	return true;
}

/* A pod that needs the card of one of lower priority. */
static struct model *model_with_a_victim(void)
{
	struct model *m = model_of_nothing();
	json_t *low = pod_object("low", CARD), *urgent = pod_object("urgent", CARD);
	give_node(m, node_object("n", 1, 8192, 100));
	allocate(low, "n", "n-0,NVIDIA,8192,0:;", "success", true);
	give_pod(m, low);
	json_object_set_new(json_object_get(urgent, "spec"), "priority", json_integer(10));
	model_advance(m, 1000 * S);
	json_t *args = filter_args(urgent, "n");
	json_decref(verbs_filter(m, args));
	json_decref(args);
	return m;
}

static void look_at(struct model *m, uint64_t now_s)
{
	model_advance(m, now_s * S);
	assert_non_null(ringing);
	ringing->handler(ringing->data);
}

#define EVICTION "/api/v1/namespaces/ns/pods/low/eviction"

/* The server may have done what it did not answer, so some seconds pass. */
static void test_failed_evictions_are_tried_again(void **state)
{
	struct model *m = model_with_a_victim();
	const struct evictor_terms terms = { .model = m, .may_act = leads };
	struct evictor *v;
	assert_int_equal(evictor_start(&terms, &v), 0);
	look_at(m, 1006);
	expect_call("POST", EVICTION);
	answer_call(500, NULL);
	assert_int_equal(evictor_counts(v).failed, 1);
	look_at(m, 1008);
	assert_null(call.done);
	look_at(m, 1012);
	expect_call("POST", EVICTION);
	evictor_stop(v);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failed_evictions_are_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
