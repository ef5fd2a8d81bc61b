/* What is answered to requests, without a connection. */
#include "webhook/review.h"

#include "scheduler/routes.h"
#include "scheduler/webhook/claim_reviews.h"

static struct scheduler scheduler; /* knows of no cluster */

/* ---- a review that waits for the API server, and its later answer ---- */

static struct {
	claim_reviewed done;
	void *data;
	unsigned status;
} later;

int claim_reviews_start(struct claim_reviews *reviews, json_t *review, claim_reviewed done,
			void *data, json_t **ret_answer, struct error *err)
{
	later.done = done;
	later.data = data;
	return 1;
}

void server_call_answer(struct server_call *call, const struct server_answer *answer)
{
	later.status = answer->status;
	free(answer->own);
}

/* ---- requests ---- */

static void ask(const char *method, const char *path, const char *body, struct server_answer *ret)
{
	const struct server_request request = {
		.method = method, .path = path, .body = body, .body_size = body ? strlen(body) : 0
	};
	*ret = (struct server_answer){ 0 };
	scheduler.webhook = default_terms;
	routes_handle(&scheduler, &request, ret);
	assert_int_equal(ret->is_later, scheduler.claim_reviews != NULL);
}

static void assert_answer(const char *method, const char *path, const char *body, unsigned status,
			  const char *part)
{
	struct server_answer answer;
	ask(method, path, body, &answer);
	const char *text = answer.own ? answer.own : answer.line;
	if (answer.status != status || !strstr(text, part))
		fail_msg("%s %s: %u: %s", method, path, answer.status, text);
	free(answer.own);
}

static void test_paths(void **state)
{
	static const char *const posts[] = { "/webhook", "/filter", "/prioritize", "/preempt",
					     "/bind" };
	static const char *const gets[] = { "/healthz", "/readyz", "/leaderz", "/metrics" };
	for (size_t i = 0; i < 5; i++) {
		assert_answer("GET", posts[i], NULL, 405, "must be POST");
		assert_answer("POST", posts[i], NULL, 400, "the body of the request is not JSON");
		assert_answer("POST", posts[i], "nonsense", 400,
			      "the body of the request is not JSON");
	}
	for (size_t i = 0; i < 5; i++)
		assert_answer("GET", "/", NULL, 404, posts[i]);
	for (size_t i = 0; i < 4; i++) {
		assert_answer("POST", gets[i], "{}", 405, "must be GET or HEAD");
		assert_answer("GET", "/", NULL, 404, gets[i]);
	}
	assert_answer("POST", "/explain/ns/pod", "{}", 405, "must be GET or HEAD");
	assert_answer("GET", "/explain", NULL, 404, "/explain/");
	static const char *const wrong[] = { "/explain/", "/explain/ns", "/explain/ns/",
					     "/explain/ns/pod/node/more" };
	for (size_t i = 0; i < 4; i++)
		assert_answer("GET", wrong[i], NULL, 400, "must be /explain/NAMESPACE/POD");
	assert_answer("GET", "/", NULL, 404, "/webhook");
	assert_answer("GET", "/webhook/", NULL, 404, "/webhook");
	assert_answer("HEAD", "/healthz", NULL, 200, "ok");
	assert_answer("GET", "/readyz", NULL, 200, "ready");
	assert_answer("GET", "/leaderz", NULL, 503, "does not lead");
}

static void test_without_a_cluster(void **state)
{
	assert_answer("POST", "/filter", "{}", 200, "kube_api is off");
	assert_answer("POST", "/preempt", "{}", 200, "kube_api is off");
	assert_answer("POST", "/bind", "{}", 200, "kube_api is off");
	assert_answer("POST", "/prioritize", "{}", 503, "kube_api is off");
	assert_answer("GET", "/explain/ns/pod", NULL, 503, "kube_api is off");
	assert_answer("GET", "/explain/ns/pod/node", NULL, 503, "kube_api is off");
}

#define REVIEW(pod) \
	"{\"apiVersion\":\"admission.k8s.io/" \
	"v1\",\"request\":{\"uid\":\"u\",\"operation\":\"CREATE\"," \
	"\"kind\":{\"kind\":\"Pod\"},\"object\":" pod "}}"

static void test_what_is_counted(void **state)
{
	scheduler.metrics = (struct metrics){ 0 };
	assert_answer("POST", "/webhook", REVIEW("{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}"),
		      200, "\"allowed\":true");
	assert_answer("POST", "/webhook", REVIEW("{}"), 200, "pod has no containers");
	assert_answer("POST", "/webhook",
		      REVIEW("{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/"
			     "gpu\":1}}}]}}"),
		      200, "JSONPatch");
	assert_answer("POST", "/webhook", "{}", 400, "apiVersion");
	assert_answer("POST", "/webhook", "[", 400, "not JSON");
	assert_answer("POST", "/prioritize", "{}", 503, "");
	assert_answer("GET", "/metrics", NULL, 200,
		      "allot_scheduler_requests_total{verb=\"webhook\",result=\"good\"} 3\n");
	assert_answer("GET", "/metrics", NULL, 200,
		      "allot_scheduler_requests_total{verb=\"webhook\",result=\"refused\"} 2\n");
	assert_answer("GET", "/metrics", NULL, 200,
		      "allot_scheduler_requests_total{verb=\"prioritize\",result=\"failed\"} 1\n");
	assert_answer("GET", "/metrics", NULL, 200, "\nallot_scheduler_pods_denied_total 1\n");
	assert_answer("GET", "/metrics", NULL, 200, "\nallot_scheduler_pods_changed_total 1\n");
}

/* A review with claims counts when it is answered, by the status of that answer. */
static void test_a_later_answer_is_counted(void **state)
{
	const struct metrics_figures *webhook = &scheduler.metrics.verb[VERB_WEBHOOK];
	struct server_answer answer;
	scheduler.metrics = (struct metrics){ 0 };
	scheduler.claim_reviews = (struct claim_reviews *)&later;
	for (unsigned i = 0; i < 2; i++) {
		ask("POST", "/webhook", REVIEW("{}"), &answer);
		assert_int_equal(webhook->good, i);
		later.done(later.data, i ? NULL : json_pack("{s:{s:b}}", "response", "allowed", 1));
		assert_int_equal(later.status, i ? 500 : 200);
		assert_int_equal(webhook->good, 1);
		assert_int_equal(webhook->failed, i);
	}
	scheduler.claim_reviews = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_without_a_cluster),
		cmocka_unit_test(test_what_is_counted),
		cmocka_unit_test(test_a_later_answer_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
