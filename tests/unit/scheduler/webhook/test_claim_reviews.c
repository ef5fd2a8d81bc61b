/* What is asked of the API server for a review, and when. */
#include "review.h"

#include "scheduler/webhook/claim_reviews.h"
#include "../../fake_kube.h"

#define SLICES \
	"/apis/resource.k8s.io/v1/resourceslices?" \
	"fieldSelector=spec.driver%3Dgpu.allot.dev&limit=500"
#define TEMPLATES "/apis/resource.k8s.io/v1/namespaces/team/resourceclaimtemplates"

static struct webhook_terms terms;
static struct claim_reviews *reviews;
static json_t *answered; /* NULL: not yet */

static int start(void **state)
{
	terms = default_terms;
	terms.device_class = "gpu.allot.dev";
	reviews = claim_reviews_new(NULL, &terms);
	return reviews ? 0 : -1;
}

static int stop(void **state)
{
	claim_reviews_free(reviews);
	return 0;
}

static void reviewed(void *data, json_t *answer)
{
	assert_null(answered);
	assert_non_null(answer);
	answered = answer;
}

/* 1: it needs the API server. */
static int review(const char *limits)
{
	json_t *object = json_pack("{s:s,s:{s:s,s:s,s:s,s:{s:s},s:{s:{s:[{s:s,s:{s:o}}]}}}}",
				   "apiVersion", "admission.k8s.io/v1", "request", "uid", "u-1",
				   "operation", "CREATE", "namespace", "team", "kind", "kind",
				   "Pod", "object", "spec", "containers", "name", "main",
				   "resources", "limits", json_of(limits));
	struct error err;
	assert_non_null(object);
	int r = claim_reviews_start(reviews, object, reviewed, NULL, &answered, &err);
	json_decref(object);
	return r;
}

static const char *asked_at(void)
{
	const json_t *metadata = json_object_get(call.body, "metadata");
	return json_string_value(
		json_object_get(json_object_get(metadata, "annotations"), "allot.dev/asked-at"));
}

/* The only template is not there, and is made; of how many sizes are its alternatives? */
static size_t answer_template(void)
{
	assert_string_equal(call.method, "PATCH");
	assert_memory_equal(call.path, TEMPLATES "/allot-", strlen(TEMPLATES "/allot-"));
	assert_non_null(asked_at());
	answer_call(404, NULL);
	expect_call("POST", TEMPLATES);
	assert_non_null(asked_at());
	const json_t *spec = json_object_get(json_object_get(call.body, "spec"), "spec");
	const json_t *devices = json_object_get(spec, "devices");
	const json_t *request = json_array_get(json_object_get(devices, "requests"), 0);
	size_t count = json_array_size(json_object_get(request, "firstAvailable"));
	assert_null(answered);
	answer_call(201, NULL);
	assert_null(call.done);
	return count;
}

static void assert_allowed(bool is_allowed)
{
	const json_t *response = json_object_get(answered, "response");
	assert_non_null(response);
	assert_int_equal(json_is_true(json_object_get(response, "allowed")), is_allowed);
	json_decref(answered);
	answered = NULL;
}

static void answer_slices(int memory_mib, const char *next)
{
	json_t *list = json_pack("{s:{s:s*},s:[{s:{s:[{s:{s:{s:s},s:{s:i}}}]}}]}", "metadata",
				 "continue", next, "items", "spec", "devices", "attributes", "type",
				 "string", "gpu", "memoryMiB", "int", memory_mib);
	assert_non_null(list);
	answer_call(200, list);
	json_decref(list);
}

/* Made where there is none; one that is there stays as it is, but for its time. */
static void test_a_template(void **state)
{
	const char *limits = "{'nvidia.com/gpumem':3000}";
	assert_int_equal(review(limits), 1);
	answer_template();
	assert_allowed(true);
	assert_int_equal(review(limits), 1);
	answer_call(200, NULL);
	assert_null(call.done);
	assert_allowed(true);
	/* Another pod is faster. */
	assert_int_equal(review(limits), 1);
	answer_call(404, NULL);
	answer_call(409, NULL);
	assert_null(call.done);
	assert_allowed(true);
	assert_int_equal(review(limits), 1);
	answer_call(404, NULL);
	answer_call(403, NULL);
	assert_allowed(false);
	assert_int_equal(review(limits), 1);
	answer_call(403, NULL);
	assert_allowed(false);
	assert_int_equal(review("{'cpu':1}"), 0);
	assert_allowed(true);
}

/* A cluster has more GPUs than a page. */
static void test_all_sizes_are_read(void **state)
{
	assert_int_equal(review("{'nvidia.com/gpumem-percentage':25}"), 1);
	expect_call("GET", SLICES);
	answer_slices(81920, "more");
	expect_call("GET", SLICES "&continue=more");
	answer_slices(46080, "");
	assert_int_equal(answer_template(), 2);
	assert_allowed(true);
	/* Known for the next pods. */
	assert_int_equal(review("{'nvidia.com/gpumem-percentage':30}"), 1);
	assert_int_equal(answer_template(), 2);
	assert_allowed(true);
}

/* Some of the sizes are none. */
static void test_a_page_fails(void **state)
{
	assert_int_equal(review("{'nvidia.com/gpumem-percentage':25}"), 1);
	answer_slices(81920, "more");
	answer_call(500, NULL);
	assert_allowed(false);
	assert_int_equal(review("{'nvidia.com/gpumem-percentage':25}"), 1);
	expect_call("GET", SLICES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_template, start, stop),
		cmocka_unit_test_setup_teardown(test_all_sizes_are_read, start, stop),
		cmocka_unit_test_setup_teardown(test_a_page_fails, start, stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
