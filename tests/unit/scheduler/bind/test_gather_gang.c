/* Bindings that wait for each other: which begin, when, and who is told what. */
#include <errno.h>

#include "../cluster.h"
#include "scheduler/bind/gather_gang.h"
#include "verbs.h"

#define SECOND UINT64_C(1000000000)
#define WAIT_NS (10 * SECOND)

struct scene {
	struct model *m;
	struct gather *g;
	unsigned started;
	int start_result; /* what start() returns */
	char begun[128];  /* uids, by commas, in their order */
};

static int start(void *data, const struct decision *decision, bind_done done, void *of)
{
	struct scene *s = data;
	size_t length = strlen(s->begun);
	snprintf(s->begun + length, sizeof(s->begun) - length, "%s,", decision->pod);
	s->started += s->start_result >= 0;
	return s->start_result;
}

static void done(void *data, const struct error *err)
{
	*(struct error *)data = *err;
}

static json_t *gang_pod(const char *name, const char *size)
{
	json_t *pod = pod_object(name, GPU);
	annotate(pod, "allot.dev/gang", "train");
	annotate(pod, "allot.dev/gang-size", size);
	return pod;
}

static struct scene begin(const char *size)
{
	struct scene s = { .m = model_of_nothing() };
	give_node(s.m, node_object("a", 3, 1000, 100));
	for (unsigned i = 0; i < 3; i++) {
		char name[8];
		snprintf(name, sizeof(name), "p%u", i);
		give_pod(s.m, size ? gang_pod(name, size) : pod_object(name, GPU));
	}
	return s;
}

static void gather(struct scene *s)
{
	const struct gather_terms terms = {
		.model = s->m, .wait_ns = WAIT_NS, .start = start, .data = s
	};
	assert_int_equal(gather_new(&terms, &s->g), 0);
}

static void end(struct scene *s)
{
	gather_free(s->g);
	model_free(s->m);
}

/* As kube-scheduler does before bind: filter, and then the extender's decision. */
static struct decision decide(struct scene *s, const char *name, uint64_t now_ns)
{
	struct decision d = { 0 };
	struct error err;
	json_t *args = filter_args(pod_object(name, GPU), "a");
	json_decref(verbs_filter(s->m, args));
	json_decref(args);
	args = bind_args(name, "a");
	if (extender_decide(s->m, args, now_ns, &d, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(args);
	return d;
}

static int bind(struct scene *s, const char *name, uint64_t now_ns, struct error *told)
{
	struct decision d = decide(s, name, now_ns);
	*told = (struct error){ .code = -1 };
	int r = gather_bind(s->g, &d, now_ns, done, told);
	decision_free(&d);
	return r;
}

static void test_a_pod_of_no_gang(void **state)
{
	struct scene s = begin(NULL);
	struct error told;
	gather(&s);
	assert_int_equal(bind(&s, "p1", SECOND, &told), 0);
	assert_string_equal(s.begun, "p1,");
	s.start_result = -ENOMEM;
	assert_int_equal(bind(&s, "p2", SECOND, &told), -ENOMEM);
	assert_int_equal(model_counts(s.m).reservations, 1);
	end(&s);
}

static void test_all_at_once(void **state)
{
	struct scene s = begin("3");
	struct error told[3];
	gather(&s);
	assert_int_equal(bind(&s, "p0", 1 * SECOND, &told[0]), 0);
	assert_int_equal(bind(&s, "p2", 2 * SECOND, &told[2]), 0);
	assert_int_equal(s.started, 0);
	assert_int_equal(gather_count(s.g), 2);
	assert_int_equal(bind(&s, "p1", 3 * SECOND, &told[1]), 0);
	assert_string_equal(s.begun, "p1,p0,p2,");
	assert_int_equal(gather_count(s.g), 0);
	end(&s);
}

static void test_it_waits_no_longer(void **state)
{
	struct scene s = begin("3");
	struct error told[3];
	gather(&s);
	bind(&s, "p0", 1 * SECOND, &told[0]);
	gather_advance(s.g, 1 * SECOND + WAIT_NS - 1);
	assert_int_equal(told[0].code, -1);
	gather_advance(s.g, 1 * SECOND + WAIT_NS);
	assert_int_equal(told[0].code, EAGAIN);
	assert_string_equal(told[0].text,
			    "pod ns/p0: gang train: 1 of 3 pods are ready to be bound");
	/* By then kube-scheduler keeps nothing for it: the others wait for it to come again. */
	bind(&s, "p1", 12 * SECOND, &told[1]);
	bind(&s, "p2", 13 * SECOND, &told[2]);
	assert_int_equal(s.started, 0);
	bind(&s, "p0", 14 * SECOND, &told[0]);
	assert_string_equal(s.begun, "p0,p1,p2,");
	end(&s);
}

static void test_its_room_is_gone(void **state)
{
	struct scene s = begin("3");
	struct error told[3];
	gather(&s);
	bind(&s, "p0", 1 * SECOND, &told[0]);
	bind(&s, "p1", 1 * SECOND, &told[1]);
	json_t *last = pod_object("p2", GPU);
	model_remove_pod(s.m, last);
	gather_advance(s.g, 2 * SECOND);
	assert_int_equal(told[0].code, EAGAIN);
	assert_int_equal(told[1].code, EAGAIN);
	assert_non_null(strstr(told[1].text, "its reservation of GPUs has expired"));
	assert_int_equal(gather_count(s.g), 0);
	json_decref(last);
	end(&s);
}

static void test_the_same_pod_again(void **state)
{
	struct scene s = begin("3");
	struct error first, again;
	gather(&s);
	bind(&s, "p0", 1 * SECOND, &first);
	bind(&s, "p0", 2 * SECOND, &again);
	assert_int_equal(first.code, ECANCELED);
	assert_int_equal(again.code, -1);
	assert_int_equal(gather_count(s.g), 1);
	gather_cancel(s.g);
	assert_int_equal(again.code, ECANCELED);
	assert_int_equal(s.started, 0);
	end(&s);
}

static void test_room_that_has_moved(void **state)
{
	struct scene s = begin("3");
	struct error told[3];
	gather(&s);
	bind(&s, "p0", 1 * SECOND, &told[0]);
	bind(&s, "p1", 1 * SECOND, &told[1]);
	/* kube-scheduler was started anew, and does not want it on that node any more. */
	give_node(s.m, node_object("b", 1, 1000, 100));
	json_t *args = filter_args(pod_object("p0", GPU), "b"), *answer = verbs_filter(s.m, args);
	assert_string_equal(fitting(answer), "b");
	json_decref(answer);
	json_decref(args);
	bind(&s, "p2", 2 * SECOND, &told[2]);
	assert_int_equal(s.started, 0);
	gather_advance(s.g, 2 * SECOND);
	assert_int_equal(told[0].code, EAGAIN);
	assert_int_equal(gather_count(s.g), 2);
	end(&s);
}

static void test_one_that_can_not_begin(void **state)
{
	struct scene s = begin("3");
	struct error told[3];
	gather(&s);
	bind(&s, "p0", 1 * SECOND, &told[0]);
	bind(&s, "p1", 1 * SECOND, &told[1]);
	s.start_result = -ENOMEM;
	assert_int_equal(bind(&s, "p2", 1 * SECOND, &told[2]), -ENOMEM);
	/* Nobody has begun: the others wait for it to come again. */
	assert_int_equal(gather_count(s.g), 2);
	s.start_result = 0;
	assert_int_equal(bind(&s, "p2", 2 * SECOND, &told[2]), 0);
	/* Its room was given back, and room was found for all of them anew: they are asked for anew, too. */
	gather_advance(s.g, 3 * SECOND);
	assert_int_equal(told[0].code, EAGAIN);
	assert_int_equal(told[1].code, EAGAIN);
	assert_int_equal(told[2].code, -1);
	bind(&s, "p0", 4 * SECOND, &told[0]);
	s.begun[0] = '\0';
	bind(&s, "p1", 4 * SECOND, &told[1]);
	assert_string_equal(s.begun, "p1,p2,p0,");
	end(&s);
}

/* The last pod needs no bind call here: another replica has bound it. */
static void test_one_that_another_replica_bound(void **state)
{
	struct scene s = begin("3");
	struct error told[2];
	gather(&s);
	bind(&s, "p0", 1 * SECOND, &told[0]);
	bind(&s, "p1", 1 * SECOND, &told[1]);
	json_t *last = gang_pod("p2", "3");
	allocate(last, "a", "a-2,NVIDIA,1000,100:;", "success", true);
	give_pod(s.m, last);
	gather_advance(s.g, 2 * SECOND);
	assert_string_equal(s.begun, "p0,p1,");
	assert_int_equal(gather_count(s.g), 0);
	end(&s);
}

static void test_one_that_leaves_its_gang(void **state)
{
	struct scene s = begin("3");
	struct error told;
	gather(&s);
	bind(&s, "p0", 1 * SECOND, &told);
	give_pod(s.m, pod_object("p0", GPU));
	/* Also if its longest wait is over by then. */
	gather_advance(s.g, 1 * SECOND + WAIT_NS);
	assert_string_equal(s.begun, "p0,");
	assert_int_equal(told.code, -1);
	end(&s);
}

/* The pod is gone between the decision and the binding. */
static void test_one_that_is_lost(void **state)
{
	struct scene s = begin("1");
	struct error told = { .code = -1 };
	gather(&s);
	struct decision d = decide(&s, "p0", 1 * SECOND);
	json_t *gone = pod_object("p0", GPU);
	model_remove_pod(s.m, gone);
	json_decref(gone);
	assert_int_equal(gather_bind(s.g, &d, 1 * SECOND, done, &told), -EAGAIN);
	assert_string_equal(s.begun, "");
	assert_int_equal(told.code, -1);
	decision_free(&d);
	end(&s);
}

/* Whether the first binding was done is not known: its time ran out. */
static void test_one_that_has_begun_already(void **state)
{
	struct scene s = begin("3");
	struct error told[3];
	gather(&s);
	for (unsigned i = 0; i < 3; i++) {
		const char name[3] = { 'p', (char)('0' + i), '\0' };
		bind(&s, name, 1 * SECOND, &told[i]);
	}
	s.begun[0] = '\0';
	assert_int_equal(bind(&s, "p1", 30 * SECOND, &told[1]), 0);
	assert_string_equal(s.begun, "p1,");
	end(&s);
}

static void test_why_a_pod_waits(void **state)
{
	struct scene s = begin(NULL);
	char text[128];
	model_bind_permit_text(s.m, "uid-p0", text, sizeof(text));
	assert_string_equal(text, "the pod is in no gang and waits for no other pod");
	model_bind_permit_text(s.m, "uid-nobody", text, sizeof(text));
	assert_string_equal(text, "the pod no longer exists");
	model_free(s.m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pod_of_no_gang),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_it_waits_no_longer),
		cmocka_unit_test(test_its_room_is_gone),
		cmocka_unit_test(test_the_same_pod_again),
		cmocka_unit_test(test_room_that_has_moved),
		cmocka_unit_test(test_one_that_can_not_begin),
		cmocka_unit_test(test_one_that_another_replica_bound),
		cmocka_unit_test(test_one_that_leaves_its_gang),
		cmocka_unit_test(test_one_that_is_lost),
		cmocka_unit_test(test_one_that_has_begun_already),
		cmocka_unit_test(test_why_a_pod_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
