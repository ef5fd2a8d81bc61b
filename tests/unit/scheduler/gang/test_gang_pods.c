/* Pods of gangs, as kube-scheduler asks about them: together or not at all. */
#include <errno.h>

#include "../cluster.h"
#include "kube/hami/annotations.h"
#include "verbs.h"

#define SECOND UINT64_C(1000000000)
#define CARD "\"nvidia.com/gpu\":\"1\""

static json_t *member(const char *name, const char *gang, const char *size)
{
	json_t *pod = pod_object(name, CARD);
	annotate(pod, "allot.dev/gang", gang);
	if (size)
		annotate(pod, "allot.dev/gang-size", size);
	return pod;
}

/* Where filter lets it go, and why not elsewhere: `node` may be NULL. */
static void ask(struct model *m, json_t *pod, const char *nodes, const char *fits, const char *node,
		const char *why)
{
	json_t *args = filter_args(json_incref(pod), nodes), *answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), fits);
	if (node && !strstr(reason_of(answer, node), why))
		fail_msg("'%s' is not of '%s'", why, reason_of(answer, node));
	json_decref(answer);
	json_decref(args);
}

static int decide(struct model *m, const char *pod, const char *node, uint64_t now_ns,
		  struct error *err)
{
	struct decision d = { 0 };
	json_t *args = bind_args(pod, node);
	int r = extender_decide(m, args, now_ns, &d, err);
	decision_free(&d);
	json_decref(args);
	return r;
}

/* It is bound to that node, and the watch tells so. */
static void bound(struct model *m, json_t *pod, const char *node, const char *card)
{
	char shares[64];
	snprintf(shares, sizeof(shares), "%s,NVIDIA,1000,100:;", card);
	allocate(pod, node, shares, "success", true);
	give_pod(m, json_incref(pod));
}

static size_t called(struct model *m)
{
	struct model_requeue_pod pods[16];
	return model_take_requeue(m, pods, 16);
}

/* "a" has `a` cards, "b" has `b`; pods p0.. of gang "train" that say they are four. */
struct scene {
	struct model *m;
	json_t *pod[6];
};

static struct scene begin(unsigned a, unsigned b, unsigned pods)
{
	struct scene s = { .m = model_of_nothing() };
	if (a)
		give_node(s.m, node_object("a", a, 1000, 100));
	if (b)
		give_node(s.m, node_object("b", b, 1000, 100));
	for (unsigned i = 0; i < pods; i++) {
		char name[16];
		snprintf(name, sizeof(name), "p%u", i);
		s.pod[i] = member(name, "train", "4");
		give_pod(s.m, json_incref(s.pod[i]));
	}
	return s;
}

static void end(struct scene *s)
{
	for (unsigned i = 0; i < 6; i++)
		json_decref(s->pod[i]);
	model_free(s->m);
}

static void test_too_few_are_there(void **state)
{
	struct scene s = begin(4, 0, 3);
	struct error err;
	ask(s.m, s.pod[0], "a", "", "a", "gang train: only 3 of its 4 pods exist");
	assert_int_equal(decide(s.m, "p0", "a", 0, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "only 3 of its 4 pods exist: none"));
	assert_int_equal(called(s.m), 0);
	assert_int_equal(model_counts(s.m).gangs_waiting, 1);
	/* The fourth: who was told so is called, and nobody else. */
	s.pod[3] = member("p3", "train", "4");
	give_pod(s.m, json_incref(s.pod[3]));
	assert_int_equal(called(s.m), 1);
	assert_int_equal(called(s.m), 0);
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	end(&s);
}

static void test_room_for_all_or_for_none(void **state)
{
	struct scene s = begin(2, 1, 4);
	ask(s.m, s.pod[0], "a,b", "", "a", "gang train: only 3 of its 4 pods have room");
	assert_int_equal(model_counts(s.m).reservations, 0);
	/* Whoever is in no gang has all of it. */
	json_t *lone = pod_object("lone", "\"nvidia.com/gpu\":\"2\"");
	ask(s.m, lone, "a,b", "a", "b", "NodeInsufficientDevice");
	/* What a node lacks by itself is said first. */
	json_t *all = pod_object("in-the-way", CARD);
	allocate(all, "b", "b-0,NVIDIA,1000,100:;", "success", true);
	give_pod(s.m, all);
	ask(s.m, s.pod[1], "a,b", "", "b", "CardInsufficientMemory");
	json_decref(lone);
	end(&s);
}

static void test_room_is_kept_for_all(void **state)
{
	struct scene s = begin(2, 3, 4);
	struct error err;
	assert_int_equal(decide(s.m, "p0", "b", 0, &err), -EAGAIN);
	assert_non_null(
		strstr(err.text, "gang train: this pod can't be bound yet: no GPUs are reserved"));
	json_t *args = filter_args(json_incref(s.pod[0]), "a,b"), *answer = verbs_filter(s.m, args);
	char first[8];
	snprintf(first, sizeof(first), "%s", fitting(answer));
	assert_int_equal(strlen(first), 1);
	assert_non_null(strstr(reason_of(answer, *first == 'a' ? "b" : "a"),
			       "gang train: its GPUs are reserved on node"));
	json_decref(answer);
	json_decref(args);
	assert_int_equal(model_counts(s.m).reservations, 4);
	/* Others find what is left: one card. */
	json_t *lone = pod_object("lone", "\"nvidia.com/gpu\":\"2\"");
	ask(s.m, lone, "a,b", "", NULL, NULL);
	/* Asked again, it is the same node; bound to another it is not. */
	ask(s.m, s.pod[0], "a,b", first, NULL, NULL);
	assert_int_equal(decide(s.m, "p0", *first == 'a' ? "b" : "a", 0, &err), -ESTALE);
	assert_int_equal(decide(s.m, "p0", first, 0, &err), 0);
	json_decref(lone);
	end(&s);
}

static size_t victims(struct model *m, json_t *pod, const char *uid)
{
	json_t *args = json_pack("{s:O,s:{s:{s:[{s:s}],s:i}}}", "Pod", pod, "NodeNameToMetaVictims",
				 "a", "Pods", "UID", uid, "NumPDBViolations", 0);
	json_t *answer = extender_preempt(m, args);
	size_t nodes = json_object_size(json_object_get(answer, "NodeNameToMetaVictims"));
	json_decref(answer);
	json_decref(args);
	return nodes;
}

/* ---- whose turn it is ---- */

static void test_bound_when_all_have_come(void **state)
{
	struct scene s = begin(4, 0, 4);
	struct error err;
	char uid[16], name[8];
	for (unsigned i = 0; i < 4; i++) {
		ask(s.m, s.pod[i], "a", "a", NULL, NULL);
		snprintf(name, sizeof(name), "p%u", i);
		snprintf(uid, sizeof(uid), "uid-p%u", i);
		assert_int_equal(decide(s.m, name, "a", 0, &err), 0);
		model_set_bind_waiting(s.m, uid, true);
		assert_int_equal(model_bind_permit(s.m, "uid-p0"),
				 i < 3 ? MODEL_PERMIT_WAIT : MODEL_PERMIT_ALLOW);
	}
	model_binding_started(s.m, "uid-p2");
	assert_int_equal(model_bind_permit(s.m, "uid-p0"), MODEL_PERMIT_ALLOW);
	/* One whose binding fails keeps its room once another is on its way. */
	model_binding_started(s.m, "uid-p0");
	model_release(s.m, "uid-p0");
	assert_int_equal(model_counts(s.m).reservations, 4);
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	assert_int_equal(decide(s.m, "p0", "a", 0, &err), 0);
	model_set_bind_waiting(s.m, "uid-p0", true);
	assert_int_equal(model_bind_permit(s.m, "uid-p0"), MODEL_PERMIT_ALLOW);
	/* None of which anybody hears anything more: their room is given back, and looked for anew. */
	model_advance(s.m, 1000 * SECOND);
	assert_int_equal(model_counts(s.m).reservations, 0);
	ask(s.m, s.pod[2], "a", "a", NULL, NULL);
	assert_int_equal(model_bind_permit(s.m, "uid-p2"), MODEL_PERMIT_UNRESERVED);
	end(&s);
}

static void test_those_that_do_not_come(void **state)
{
	struct scene s = begin(4, 0, 4);
	struct error err;
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	assert_int_equal(decide(s.m, "p0", "a", 1 * SECOND, &err), 0);
	model_set_bind_waiting(s.m, "uid-p0", true);
	/* The others are called, as kube-scheduler may not think of them. */
	model_advance(s.m, 6 * SECOND);
	assert_int_equal(called(s.m), 3);
	assert_int_equal(model_bind_permit(s.m, "uid-p0"), MODEL_PERMIT_WAIT);
	/* Then it is another's turn for as long. */
	model_advance(s.m, GANG_HOLD_NS + SECOND);
	assert_int_equal(model_bind_permit(s.m, "uid-p0"), MODEL_PERMIT_UNRESERVED);
	assert_int_equal(model_counts(s.m).reservations, 0);
	ask(s.m, s.pod[0], "a", "", "a",
	    "gang train: not all its pods were ready to be bound within gang_limit");
	assert_int_equal(victims(s.m, s.pod[0], "uid-low0"), 0);
	json_t *lone = pod_object("lone", "\"nvidia.com/gpu\":\"4\"");
	ask(s.m, lone, "a", "a", NULL, NULL);
	model_advance(s.m, 3 * GANG_HOLD_NS + 2 * SECOND);
	assert_int_equal(called(s.m), 4);
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	json_decref(lone);
	end(&s);
}

/* ---- nodes that kube-scheduler refuses ---- */

static void test_room_moves_to_where_it_is_asked_about(void **state)
{
	struct scene s = begin(4, 1, 4);
	/* Nobody has said that p3 is for b alone. */
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	ask(s.m, s.pod[3], "b", "b", NULL, NULL);
	ask(s.m, s.pod[1], "a,b", "a", NULL, NULL);
	assert_int_equal(model_counts(s.m).reservations, 4);
	end(&s);
}

static void test_room_that_suits_nobody_is_given_back(void **state)
{
	struct scene s = begin(4, 0, 4);
	give_node(s.m, node_object("c", 0, 1000, 100));
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	ask(s.m, s.pod[3], "c", "", NULL, NULL);
	assert_int_equal(model_counts(s.m).reservations, 0);
	ask(s.m, s.pod[0], "a", "", "a", "gang train: only 3 of its 4 pods have room");
	end(&s);
}

static void test_each_by_what_it_was_asked_about(void **state)
{
	struct scene s = begin(2, 2, 4);
	/* As they stood when too little was there. */
	json_t *lone = pod_object("lone", CARD);
	allocate(lone, "b", "b-0,NVIDIA,1000,100:;", "success", true);
	give_pod(s.m, json_incref(lone));
	ask(s.m, s.pod[0], "a", "", "a",
	    "gang train: only 2 of its 4 pods have room"); /* all are taken to be for a */
	ask(s.m, s.pod[1], "a", "", "a", "gang train: only 2 of its 4 pods have room");
	ask(s.m, s.pod[2], "b", "", "b", "gang train: only 3 of its 4 pods have room");
	ask(s.m, s.pod[3], "b", "", "b", "gang train: only 3 of its 4 pods have room");
	model_remove_pod(s.m, lone);
	ask(s.m, s.pod[3], "b", "b", NULL, NULL);
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	json_decref(lone);
	end(&s);
}

static void test_a_node_that_is_gone(void **state)
{
	struct scene s = begin(4, 4, 4);
	json_t *args = filter_args(json_incref(s.pod[0]), "a,b"), *answer = verbs_filter(s.m, args);
	char first[8];
	snprintf(first, sizeof(first), "%s", fitting(answer));
	json_decref(answer);
	json_decref(args);
	const char *other = *first == 'a' ? "b" : "a";
	model_remove_node(s.m, first);
	for (unsigned i = 0; i < 4; i++)
		ask(s.m, s.pod[i], other, other, NULL, NULL);
	end(&s);
}

/* ---- what they say ---- */

static void test_sizes_that_differ(void **state)
{
	struct scene s = begin(4, 0, 3);
	s.pod[3] = member("p3", "train", "3");
	give_pod(s.m, json_incref(s.pod[3]));
	for (unsigned i = 0; i < 4; i++)
		ask(s.m, s.pod[i], "a", "", "a",
		    "gang train: its pods state different numbers of pods, 4 and 3: must be the same");
	end(&s);
}

static void test_sizes_that_can_not_be(void **state)
{
	struct scene s = begin(4, 0, 3);
	s.pod[3] = member("p3", "train", "many");
	give_pod(s.m, json_incref(s.pod[3]));
	ask(s.m, s.pod[3], "a", "", "a", "gang train: allot.dev/gang-size: 'many'");
	ask(s.m, s.pod[0], "a", "", "a", "gang train: only 3 of its 4 pods have room");
	json_t *nameless = pod_object("nameless", CARD);
	annotate(nameless, "allot.dev/gang-size", "2");
	give_pod(s.m, json_incref(nameless));
	ask(s.m, nameless, "a", "", "a", "gang: allot.dev/gang-size is set without allot.dev/gang");
	json_decref(nameless);
	end(&s);
}

static void test_no_size(void **state)
{
	struct model *m = model_of_nothing();
	struct model_unsized groups[4];
	give_node(m, node_object("a", 1, 1000, 100));
	json_t *pod = member("p0", "train", NULL);
	give_pod(m, json_incref(pod));
	ask(m, pod, "a", "a", NULL, NULL);
	assert_int_equal(model_bind_permit(m, "uid-p0"), MODEL_PERMIT_ALLOW);
	/* It is said once. */
	assert_int_equal(model_take_unsized(m, groups, 4), 1);
	assert_string_equal(groups[0].group, "ns/train");
	assert_string_equal(groups[0].by, "allot.dev/gang");
	assert_int_equal(model_take_unsized(m, groups, 4), 0);
	assert_int_equal(model_counts(m).gangs_waiting, 0);
	/* One of them says it for all. */
	json_t *other = member("p1", "train", "3");
	give_pod(m, other);
	ask(m, pod, "a", "", "a", "gang train: only 2 of its 3 pods exist");
	json_decref(pod);
	model_free(m);
}

static void test_gangs_are_of_a_namespace(void **state)
{
	struct scene s = begin(4, 0, 3);
	json_t *pod = member("p3", "train", "4");
	json_object_set_new(json_object_get(pod, "metadata"), "namespace", json_string("other"));
	give_pod(s.m, json_incref(pod));
	ask(s.m, pod, "a", "", "a", "gang train: only 1 of its 4 pods exist");
	ask(s.m, s.pod[0], "a", "", "a", "gang train: only 3 of its 4 pods exist");
	json_decref(pod);
	end(&s);
}

/* ---- who counts ---- */

static void test_gated_pods_and_such_without_cards(void **state)
{
	struct scene s = begin(4, 0, 2);
	json_t *launcher = pod_object("launcher", "\"cpu\":\"1\"");
	annotate(launcher, "allot.dev/gang", "train");
	give_pod(s.m, launcher);
	json_t *gated = member("gated", "train", "4");
	json_t *spec = json_object_get(gated, "spec");
	json_object_set_new(spec, "schedulingGates", object_of("[{\"name\":\"later\"}]"));
	give_pod(s.m, json_incref(gated));
	ask(s.m, s.pod[0], "a", "", "a", "gang train: only 3 of its 4 pods exist");
	json_object_del(spec, "schedulingGates");
	give_pod(s.m, json_incref(gated));
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	assert_int_equal(model_counts(s.m).reservations, 3);
	json_decref(gated);
	end(&s);
}

static void test_more_than_its_size(void **state)
{
	struct scene s = begin(5, 0, 6);
	struct error err;
	ask(s.m, s.pod[5], "a", "", "a",
	    "CardInsufficientMemory"); /* five have room, and it is the sixth */
	assert_int_equal(model_counts(s.m).reservations, 5);
	for (unsigned i = 0; i < 4; i++) {
		char name[8], uid[16];
		snprintf(name, sizeof(name), "p%u", i);
		snprintf(uid, sizeof(uid), "uid-p%u", i);
		assert_int_equal(decide(s.m, name, "a", 0, &err), 0);
		model_set_bind_waiting(s.m, uid, true);
	}
	assert_int_equal(model_bind_permit(s.m, "uid-p0"), MODEL_PERMIT_ALLOW);
	end(&s);
}

static void test_one_that_ends_before_they_are_bound(void **state)
{
	struct scene s = begin(4, 0, 4);
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	model_remove_pod(s.m, s.pod[3]);
	assert_int_equal(model_counts(s.m).reservations, 0);
	ask(s.m, s.pod[0], "a", "", "a", "gang train: only 3 of its 4 pods exist");
	end(&s);
}

/* It is there until it has ended, but nothing is kept for it. */
static void test_one_that_is_ending(void **state)
{
	struct scene s = begin(5, 0, 5);
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	assert_int_equal(model_counts(s.m).reservations, 5);
	json_t *meta = json_object_get(s.pod[4], "metadata");
	json_object_set_new(meta, "deletionTimestamp", json_string("2026-01-01T00:00:00Z"));
	give_pod(s.m, json_incref(s.pod[4]));
	assert_int_equal(model_counts(s.m).reservations, 4);
	json_t *lone = pod_object("lone", CARD);
	ask(s.m, lone, "a", "a", NULL, NULL);
	meta = json_object_get(s.pod[3], "metadata");
	json_object_set_new(meta, "deletionTimestamp", json_string("2026-01-01T00:00:00Z"));
	give_pod(s.m, json_incref(s.pod[3]));
	assert_int_equal(model_counts(s.m).reservations, 0);
	ask(s.m, s.pod[0], "a", "", "a", "gang train: only 3 of its 4 pods exist");
	json_decref(lone);
	end(&s);
}

static void test_one_that_ends_afterwards(void **state)
{
	struct scene s = begin(4, 0, 4);
	for (unsigned i = 0; i < 4; i++) {
		char card[8];
		snprintf(card, sizeof(card), "a-%u", i);
		bound(s.m, s.pod[i], "a", card);
	}
	assert_int_equal(model_counts(s.m).gangs_placed, 1);
	model_remove_pod(s.m, s.pod[0]);
	model_remove_pod(s.m, s.pod[1]);
	/* Who comes in the place of one does not wait for the other's. */
	s.pod[4] = member("p4", "train", "4");
	give_pod(s.m, json_incref(s.pod[4]));
	ask(s.m, s.pod[4], "a", "a", NULL, NULL);
	end(&s);
}

static void test_the_rest_of_one_after_a_restart(void **state)
{
	struct scene s = begin(3, 0, 4);
	struct error err;
	bound(s.m, s.pod[0], "a", "a-0");
	/* Three are missing, and there is room for two: all of them wait, as half of each of two gangs would run else. */
	ask(s.m, s.pod[1], "a", "", "a", "gang train: only 3 of its 4 pods have room");
	give_node(s.m, node_object("b", 1, 1000, 100));
	ask(s.m, s.pod[1], "a,b", "a", NULL, NULL);
	/* It has begun: nobody waits for the others then. */
	assert_int_equal(decide(s.m, "p1", "a", 0, &err), 0);
	model_set_bind_waiting(s.m, "uid-p1", true);
	assert_int_equal(model_bind_permit(s.m, "uid-p1"), MODEL_PERMIT_ALLOW);
	end(&s);
}

/* ---- other verbs ---- */

static void test_one_that_runs_keeps_what_it_has(void **state)
{
	struct scene s = begin(3, 1, 4);
	bound(s.m, s.pod[0], "a", "a-0");
	ask(s.m, s.pod[3], "b", "", NULL, NULL); /* as b alone is known of */
	ask(s.m, s.pod[1], "a", "a", NULL, NULL);
	ask(s.m, s.pod[2], "a", "a", NULL, NULL);
	assert_int_equal(model_counts(s.m).reservations, 3);
	/* b is for p3 no longer, and nothing else is. */
	give_node(s.m, node_object("c", 0, 1000, 100));
	ask(s.m, s.pod[3], "c", "", NULL, NULL);
	assert_int_equal(model_counts(s.m).reservations, 2);
	ask(s.m, s.pod[1], "a", "", "a", "gang train: only 3 of its 4 pods have room");
	assert_int_equal(model_counts(s.m).reservations, 2);
	end(&s);
}

static void test_quotas_have_room_for_all(void **state)
{
	struct scene s = begin(5, 0, 4);
	give_quota(s.m, "q", "\"limits.nvidia.com/gpu\":\"3\"");
	ask(s.m, s.pod[0], "a", "", "a", "gang train: only 3 of its 4 pods have room");
	assert_int_equal(model_counts(s.m).reservations, 0);
	give_quota(s.m, "q", "\"limits.nvidia.com/gpu\":\"4\"");
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	/* And they have taken all of it. */
	json_t *lone = pod_object("lone", CARD);
	ask(s.m, lone, "a", "", "a", "ResourceQuotaNotFit");
	json_decref(lone);
	end(&s);
}

static void test_dry_runs_change_nothing(void **state)
{
	struct scene s = begin(4, 0, 4);
	json_t *args = json_pack("{s:O,s:{s:[o]}}", "Pod", s.pod[0], "Nodes", "items",
				 node_object("new", 1, 1000, 100));
	json_t *answer = verbs_filter(s.m, args);
	assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "Nodes"), "items")),
			 1);
	assert_int_equal(model_counts(s.m).reservations, 0);
	json_decref(answer);
	json_decref(args);
	end(&s);
}

static void test_nobody_ends_for_half_a_gang(void **state)
{
	struct scene s = begin(4, 0, 4);
	for (unsigned i = 0; i < 4; i++) {
		char name[8], shares[64];
		snprintf(name, sizeof(name), "low%u", i);
		snprintf(shares, sizeof(shares), "a-%u,NVIDIA,1000,100:;", i);
		json_t *low = pod_object(name, CARD);
		/* One of them has a priority that nobody's is above. */
		json_object_set_new(json_object_get(low, "spec"), "priority",
				    json_integer(i == 3 ? 100 : 1));
		allocate(low, "a", shares, "success", true);
		give_pod(s.m, low);
	}
	json_object_set_new(json_object_get(s.pod[0], "spec"), "priority", json_integer(50));
	ask(s.m, s.pod[0], "a", "", "a", "CardInsufficientMemory");
	struct model_counts before = model_counts(s.m);
	assert_int_equal(victims(s.m, s.pod[0], "uid-low0"), 0);
	give_node(s.m, node_object("b", 1, 1000, 100));
	ask(s.m, s.pod[0], "a,b", "", "b", "gang train: only 1 of its 4 pods have room");
	/* With b there is room for the fourth: it knows b as it was asked about last. */
	assert_int_equal(victims(s.m, s.pod[0], "uid-low0"), 1);
	struct model_counts after = model_counts(s.m);
	assert_int_equal(after.reservations, before.reservations);
	assert_int_equal(after.pods, before.pods);
	/* Nor for one that is not all there. */
	model_remove_pod(s.m, s.pod[3]);
	assert_int_equal(victims(s.m, s.pod[0], "uid-low0"), 0);
	end(&s);
}

/* Off: as if nobody had said anything. */
static void test_switched_off(void **state)
{
	const struct model_terms terms = { .request = request_terms_default };
	struct model *m;
	assert_int_equal(model_new(&terms, &m), 0);
	for (enum model_kind kind = MODEL_NODES; kind <= MODEL_PODS; kind++) {
		model_list_begin(m, kind);
		model_list_end(m, kind);
	}
	give_node(m, node_object("a", 1, 1000, 100));
	json_t *pod = member("p0", "train", "4");
	give_pod(m, json_incref(pod));
	ask(m, pod, "a", "a", NULL, NULL);
	json_decref(pod);
	model_free(m);
}

/* A gang leaves the room that other pods were evicted for to the pod that they were evicted for. */
static void test_room_that_others_were_evicted_for(void **state)
{
	struct scene s = begin(4, 0, 4);
	struct model_eviction list[8];
	json_t *low = pod_object("low", CARD), *urgent = pod_object("urgent", CARD);
	json_object_set_new(json_object_get(low, "spec"), "priority", json_integer(-1));
	json_object_set_new(json_object_get(urgent, "spec"), "priority", json_integer(1));
	allocate(low, "a",
		 "a-0,NVIDIA,1000,100:a-1,NVIDIA,1000,100:a-2,NVIDIA,1000,100:"
		 "a-3,NVIDIA,1000,100:;",
		 "success", true);
	give_pod(s.m, json_incref(low));
	ask(s.m, urgent, "a", "", "a", "CardInsufficientMemory");
	model_advance(s.m, 10 * SECOND);
	assert_int_equal(model_take_evictions(s.m, 0, list, 8), 1);
	model_remove_pod(s.m, low);
	ask(s.m, s.pod[0], "a", "", "a", "is reserved for pod ns/urgent");
	assert_int_equal(model_counts(s.m).reservations, 0);
	model_remove_pod(s.m, urgent);
	ask(s.m, s.pod[0], "a", "a", NULL, NULL);
	json_decref(low);
	json_decref(urgent);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_few_are_there),
		cmocka_unit_test(test_room_for_all_or_for_none),
		cmocka_unit_test(test_room_is_kept_for_all),
		cmocka_unit_test(test_room_that_others_were_evicted_for),
		cmocka_unit_test(test_bound_when_all_have_come),
		cmocka_unit_test(test_those_that_do_not_come),
		cmocka_unit_test(test_room_moves_to_where_it_is_asked_about),
		cmocka_unit_test(test_room_that_suits_nobody_is_given_back),
		cmocka_unit_test(test_each_by_what_it_was_asked_about),
		cmocka_unit_test(test_a_node_that_is_gone),
		cmocka_unit_test(test_sizes_that_differ),
		cmocka_unit_test(test_sizes_that_can_not_be),
		cmocka_unit_test(test_no_size),
		cmocka_unit_test(test_gangs_are_of_a_namespace),
		cmocka_unit_test(test_gated_pods_and_such_without_cards),
		cmocka_unit_test(test_more_than_its_size),
		cmocka_unit_test(test_one_that_ends_before_they_are_bound),
		cmocka_unit_test(test_one_that_is_ending),
		cmocka_unit_test(test_one_that_ends_afterwards),
		cmocka_unit_test(test_the_rest_of_one_after_a_restart),
		cmocka_unit_test(test_one_that_runs_keeps_what_it_has),
		cmocka_unit_test(test_quotas_have_room_for_all),
		cmocka_unit_test(test_dry_runs_change_nothing),
		cmocka_unit_test(test_nobody_ends_for_half_a_gang),
		cmocka_unit_test(test_switched_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
