/* What is remembered of pods, and for how many: before a server that nobody can reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/cluster/recorder.h"

static char server[] = "http://127.0.0.1:1";
static const struct kube_access nobody = { .server = server };

struct fixture {
	struct kube_client *client;
	struct recorder *recorder;
};

static int setup(void **state)
{
	static struct fixture f;
	struct error err = { 0 };
	f = (struct fixture){ 0 };
	assert_int_equal(kube_client_new(&nobody, &f.client, &err), 0);
	assert_int_equal(recorder_new(f.client, NULL, &f.recorder), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	recorder_free(f->recorder);
	kube_client_free(f->client);
	return 0;
}

static void filter(struct fixture *f, const char *uid, bool fits)
{
	struct call_args *args = call_args_of(json_pack("{s:{s:{s:s,s:s,s:s}},s:[ss]}", "Pod",
							"metadata", "uid", uid, "name", "p",
							"namespace", "n", "NodeNames", "a", "b"));
	struct filter_answer *answer = filter_answer_new(args);
	assert_non_null(answer);
	for (unsigned i = 0; i < 2; i++) {
		bool is_fit = fits && i == 0;
		answer->fits += is_fit;
		answer->verdict[i].list = is_fit ? FILTER_FITS : FILTER_FAILED;
		assert_int_equal(filter_answer_add_reason(answer, "8/8 CardNotHealth",
							  &answer->verdict[i].reason),
				 0);
	}
	recorder_record_filter(f->recorder, answer);
	filter_answer_put(answer);
	call_args_put(args);
}

static void test_each_pod_once_in_a_while(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 100; i++) {
		filter(f, "u", false);
		kube_client_process(f->client);
	}
	struct recorder_counts counts = recorder_counts(f->recorder);
	assert_int_equal(counts.pods, 1);
	assert_int_equal(counts.sent, 2); /* a reason, and that there is no node */
	assert_int_equal(counts.suppressed, 99);
}

static void test_all_together(void **state)
{
	struct fixture *f = *state;
	char uid[16];
	for (unsigned i = 0; i < RECORDER_PODS_MOST + 1000; i++) {
		snprintf(uid, sizeof(uid), "u%u", i);
		filter(f, uid, false);
		if (i % 3 == 0)
			kube_client_process(f->client);
	}
	struct recorder_counts counts = recorder_counts(f->recorder);
	assert_int_equal(counts.pods, RECORDER_PODS_MOST);
	assert_true(counts.sent >= 2 && counts.suppressed > RECORDER_PODS_MOST);
}

static void test_what_is_not_a_call_of_filter(void **state)
{
	struct fixture *f = *state;
	char in[] = "n", name[] = "p", uid[] = "u", node[] = "a";
	const struct decision decision = { in, name, uid, node, { 0 } };
	struct call_args *empty = call_args_of(json_object());
	struct filter_answer *answer = filter_answer_new(empty);
	recorder_record_filter(f->recorder, answer);
	filter_answer_put(answer);
	call_args_put(empty);
	/* Nothing is known of it: it was placed before we were there. */
	recorder_record_placement(f->recorder, &decision, 1);
	assert_int_equal(recorder_counts(f->recorder).pods, 0);
	/* One that fits is told when a node was taken, once. */
	filter(f, "u", true);
	assert_int_equal(recorder_counts(f->recorder).sent, 0);
	recorder_record_placement(f->recorder, &decision, 1);
	recorder_record_placement(f->recorder, &decision, 1);
	assert_int_equal(recorder_counts(f->recorder).sent, 1);
	assert_int_equal(recorder_counts(NULL).sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_pod_once_in_a_while, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_together, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_not_a_call_of_filter, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
