/* Which templates a sweep deletes, and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdbool.h>
#include <time.h>

#include "kube/util/timestamp.h"
#include "scheduler/webhook/template_sweep.h"
#include "../../fake_kube.h"

#define API "/apis/resource.k8s.io/v1"
#define TEMPLATES \
	API "/resourceclaimtemplates?limit=200&" \
	    "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dallot-scheduler"
#define PODS(in) "/api/v1/namespaces/" in "/pods?limit=200"
#define TEMPLATE(in, name) API "/namespaces/" in "/resourceclaimtemplates/" name

static struct template_sweep *sweep;
static bool leads;

static bool may_act(void *data)
{
	return leads;
}

static int start(void **state)
{
	leads = true;
	sweep = template_sweep_start(NULL, may_act, NULL);
	return sweep ? 0 : -1;
}

static int stop(void **state)
{
	template_sweep_stop(sweep);
	return 0;
}

static void ring(void)
{
	assert_non_null(ringing);
	ringing->handler(ringing->data);
}

static void put_when(json_t *to, const char *name, int ago_s)
{
	char text[TIMESTAMP_MAX];
	timestamp_format_rfc3339((int64_t)time(NULL) - ago_s, text);
	json_object_set_new(to, name, json_string(text));
}

/* `asked_ago_s` -1: no pod has written on it. */
static json_t *template(const char *in, const char *name, int made_ago_s, int asked_ago_s)
{
	json_t *metadata = json_pack("{s:s, s:s, s:s, s:s, s:{}}", "namespace", in, "name", name,
				     "uid", "u", "resourceVersion", "7", "annotations");
	put_when(metadata, "creationTimestamp", made_ago_s);
	if (asked_ago_s >= 0)
		put_when(json_object_get(metadata, "annotations"), TEMPLATE_REQUESTED, asked_ago_s);
	return json_pack("{s:o}", "metadata", metadata);
}

static void answer_list(json_t *items, const char *next)
{
	json_t *list = json_pack("{s:{s:s*}, s:o}", "metadata", "continue", next, "items", items);
	answer_call(200, list);
	json_decref(list);
}

static json_t *pod(const char *template)
{
	return json_pack("{s:{s:[{s:s}, {s:s, s:s}]}}", "spec", "resourceClaims", "name", "other",
			 "name", "gpu", "resourceClaimTemplateName", template);
}

static void test_what_no_pod_uses_is_deleted(void **state)
{
	ring();
	expect_call("GET", TEMPLATES);
	answer_list(json_pack("[o, o, o]", template("a", "young", 9000, 600),
			      template("a", "used", 9000, 9000), template("a", "left", 9000, 9000)),
		    "more");
	expect_call("GET", TEMPLATES "&continue=more");
	answer_list(json_pack("[o, o, o]", template("b", "new", 60, -1),
			      template("b", "used", 9000, -1), template("b", "left", 9000, -1)),
		    "");
	expect_call("GET", PODS("a"));
	answer_list(json_pack("[o]", pod("other")), "next");
	expect_call("GET", PODS("a") "&continue=next");
	answer_list(json_pack("[{s:{}}, o]", "spec", pod("used")), NULL);
	expect_call("DELETE", TEMPLATE("a", "left"));
	const json_t *only = json_object_get(call.body, "preconditions");
	assert_string_equal(json_string_value(json_object_get(only, "uid")), "u");
	assert_string_equal(json_string_value(json_object_get(only, "resourceVersion")), "7");
	/* A pod has asked for it meanwhile. */
	answer_call(409, NULL);
	expect_call("GET", PODS("b"));
	answer_list(json_pack("[o]", pod("used")), NULL);
	expect_call("DELETE", TEMPLATE("b", "left"));
	answer_call(200, NULL);
	assert_null(call.done);
	/* And the next time. */
	ring();
	expect_call("GET", TEMPLATES);
}

/* Where pods can't be read nothing is deleted; other namespaces do not wait for it. */
static void test_pods_that_cant_be_read(void **state)
{
	ring();
	answer_list(json_pack("[o, o]", template("a", "left", 9000, -1),
			      template("b", "left", 9000, -1)),
		    NULL);
	expect_call("GET", PODS("a"));
	answer_list(json_array(), "next");
	answer_call(403, NULL);
	expect_call("GET", PODS("b"));
	answer_list(json_array(), NULL);
	expect_call("DELETE", TEMPLATE("b", "left"));
	answer_call(403, NULL);
	assert_null(call.done);
	ring();
	answer_call(500, NULL);
	assert_null(call.done);
	assert_non_null(ringing);
}

static void test_another_replica_leads(void **state)
{
	leads = false;
	ring();
	assert_null(call.done);
	leads = true;
	ring();
	expect_call("GET", TEMPLATES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_no_pod_uses_is_deleted, start, stop),
		cmocka_unit_test_setup_teardown(test_pods_that_cant_be_read, start, stop),
		cmocka_unit_test_setup_teardown(test_another_replica_leads, start, stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
