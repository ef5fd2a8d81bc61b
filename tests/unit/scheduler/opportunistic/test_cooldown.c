/* Cards that are shut to opportunistic pods, past a restart of the scheduler: by annotations of their nodes. */
#include "../cluster.h"
#include "kube/hami/annotations.h"
#include "scheduler/model/model_inside.h"
#include "scheduler/opportunistic/opportunistic.h"
#include "verbs.h"

#define S UINT64_C(1000000000)
#define WALL INT64_C(1790000000)
#define CARDS 2

/* Cards as a model has them whose node has said what is used of them. */
struct cards {
	struct place_card card[CARDS];
	struct inventory inventory;
	struct use use;
};

static void make_cards(struct cards *c)
{
	*c = (struct cards){ .card = { { .uuid = "GPU-a" }, { .uuid = "GPU-b" } } };
	c->inventory = (struct inventory){ .count = CARDS, .card = c->card };
	assert_int_equal(use_update(&c->use, "{\"t\":1,\"cards\":[]}", &c->inventory, 0, NULL), 0);
}

static int hear(struct cards *c, const char *text, uint64_t now_s, int64_t wall_s)
{
	struct error err;
	return cooldown_load(&c->use, text, &c->inventory,
			     (struct cooldown_now){ now_s * S, wall_s }, &err);
}

static char *tell(const struct cards *c, uint64_t now_s, int64_t wall_s)
{
	char *text;
	const struct cooldown_now now = { now_s * S, wall_s };
	assert_int_equal(cooldown_format(&c->use, &c->inventory, now, &text), 0);
	return text;
}

/* For so long; 0: it is open. */
static uint64_t left_s(const struct cards *c, unsigned i, uint64_t now_s)
{
	uint64_t cooldown_ns = c->use.card[i].cooldown_ns;
	return cooldown_ns > now_s * S ? (cooldown_ns - now_s * S) / S : 0;
}

static void test_from_one_to_the_next(void **state)
{
	struct cards one, next;
	make_cards(&one);
	make_cards(&next);
	assert_null(tell(&one, 50000, WALL));
	opportunistic_cooldown(&one.use.card[1], 50000 * S);
	opportunistic_cooldown(&one.use.card[1], 50001 * S);
	char *text = tell(&one, 50001, WALL + 1);
	assert_string_equal(text,
			    "{\"cards\":[{\"id\":\"GPU-b\",\"until\":1790001201,\"rounds\":2}]}");
	/* Another clock, and a minute later. */
	assert_int_equal(hear(&next, text, 100, WALL + 61), 0);
	assert_int_equal(left_s(&next, 0, 100), 0);
	assert_int_equal(left_s(&next, 1, 100), 1200 - 60);
	assert_int_equal(next.use.card[1].rounds, 2);
	/* It goes on where the other was: the next time is the third. */
	opportunistic_cooldown(&next.use.card[1], 101 * S);
	assert_int_equal(left_s(&next, 1, 101), 2400);
	/* What it wrote itself changes nothing; nor what is said of it by who knows less. */
	char *own = tell(&next, 101, WALL + 62);
	assert_int_equal(hear(&next, own, 101, WALL + 62), 0);
	assert_int_equal(hear(&next, text, 101, WALL + 62), 0);
	assert_int_equal(left_s(&next, 1, 101), 2400);
	assert_int_equal(next.use.card[1].rounds, 3);
	free(own);
	free(text);
	use_free(&one.use);
	use_free(&next.use);
}

/* What is over counts for how long it will be the next time, as it would have without a restart. */
static void test_what_is_over(void **state)
{
	struct cards one, next;
	make_cards(&one);
	opportunistic_cooldown(&one.use.card[0], 100000 * S);
	char *text = tell(&one, 100600 + 3600, WALL + 3600);
	assert_string_equal(text,
			    "{\"cards\":[{\"id\":\"GPU-a\",\"until\":1790000000,\"rounds\":1}]}");
	/* Also where the machine was started since. */
	static const uint64_t ups_s[] = { 100000, 3600, 5 };
	for (size_t i = 0; i < sizeof(ups_s) / sizeof(ups_s[0]); i++) {
		make_cards(&next);
		assert_int_equal(hear(&next, text, ups_s[i], WALL + 3600), 0);
		assert_int_equal(left_s(&next, 0, ups_s[i]), 0);
		opportunistic_cooldown(&next.use.card[0], ups_s[i] * S);
		assert_int_equal(left_s(&next, 0, ups_s[i]), 1200);
		use_free(&next.use);
	}
	/* Forgiven: it begins with ten minutes, and nothing is said of it any more. */
	make_cards(&next);
	assert_int_equal(hear(&next, text, 100000, WALL + 12 * 3600), 0);
	opportunistic_cooldown(&next.use.card[0], 100000 * S);
	assert_int_equal(left_s(&next, 0, 100000), 600);
	use_free(&next.use);
	assert_null(tell(&one, 100600 + 12 * 3600, WALL + 12 * 3600));
	free(text);
	use_free(&one.use);
}

/* A clock that is years ahead shuts nothing for longer than we would; what can't be read changes nothing. */
static void test_what_is_wrong(void **state)
{
	struct cards c;
	make_cards(&c);
	assert_int_equal(hear(&c,
			      "{\"cards\":[{\"id\":\"GPU-a\",\"until\":9223372036854775807,"
			      "\"rounds\":255}]}",
			      100, WALL),
			 0);
	assert_int_equal(left_s(&c, 0, 100), OPPORTUNISTIC_COOLDOWN_MOST_NS / S);
	opportunistic_cooldown(&c.use.card[0], 101 * S);
	assert_int_equal(left_s(&c, 0, 101), OPPORTUNISTIC_COOLDOWN_MOST_NS / S);
	assert_int_equal(hear(&c, "{\"cards\":1}", 101, WALL), -22);
	assert_int_equal(left_s(&c, 0, 101), OPPORTUNISTIC_COOLDOWN_MOST_NS / S);
	/* Long over, by a clock of 1970. */
	assert_int_equal(
		hear(&c, "{\"cards\":[{\"id\":\"GPU-b\",\"until\":0,\"rounds\":9}]}", 101, WALL), 0);
	assert_int_equal(c.use.card[1].rounds, 0);
	/* Taken away by hand: open. */
	assert_int_equal(hear(&c, NULL, 102, WALL), 0);
	assert_int_equal(left_s(&c, 0, 102), 0);
	assert_null(tell(&c, 102, WALL));
	use_free(&c.use);
}

/* ---- a model, and its successor ---- */

static struct model *model_by_use(void)
{
	struct model *m;
	struct model_terms terms = { .request = request_terms_default };
	terms.request.places_by_use = true;
	assert_int_equal(model_new(&terms, &m), 0);
	for (enum model_kind kind = MODEL_NODES; kind <= MODEL_PODS; kind++) {
		model_list_begin(m, kind);
		model_list_end(m, kind);
	}
	return m;
}

static void say(struct model *m, int at, int now, const char *cooldown)
{
	char text[200];
	json_t *node = node_object("n", 1, 8192, 100);
	snprintf(text, sizeof(text),
		 "{\"t\":%d,\"cards\":[{\"id\":\"n-0\",\"peak\":%d,\"now\":%d,\"held\":80,\"mem\":0}]}",
		 at, now, now);
	annotate(node, KUBE_NODE_USE, text);
	if (cooldown)
		annotate(node, KUBE_NODE_COOLDOWNS, cooldown);
	give_node(m, node);
}

static json_t *pod(const char *name, const char *cores, bool is_opportunistic)
{
	char limits[120];
	snprintf(limits, sizeof(limits),
		 "\"nvidia.com/gpumem\":\"100\",\"nvidia.com/gpucores\":\"%s\"", cores);
	json_t *object = pod_object(name, limits);
	if (is_opportunistic)
		annotate(object, "allot.dev/placement", "use");
	return object;
}

static bool fits(struct model *m)
{
	json_t *args = filter_args(pod("asks", "10", true), "n"), *answer = verbs_filter(m, args);
	bool is = *fitting(answer);
	json_decref(args);
	json_decref(answer);
	return is;
}

/* One whose opportunistic pods were sent away. What it says of the node is to be freed. */
static char *send_away(struct model *m)
{
	struct model_eviction list[8];
	struct model_cooldown cooldown;
	json_t *training = pod("training", "80", false), *opportunistic = pod("filler", "50", true);
	model_advance(m, 1000 * S);
	model_set_wall(m, WALL);
	say(m, 1, 0, NULL);
	allocate(training, "n", "n-0,NVIDIA,100,80:;", "success", true);
	give_pod(m, training);
	allocate(opportunistic, "n", "n-0,NVIDIA,100,0:;", "success", true);
	annotate(opportunistic, "allot.dev/borrowed", "n-0,NVIDIA,100,50:;");
	give_pod(m, json_incref(opportunistic));
	say(m, 2, 80, NULL);
	assert_int_equal(model_take_evictions(m, S, list, 8), 0);
	model_advance(m, 1001 * S);
	assert_int_equal(model_take_cooldown(m, &cooldown), 0);
	assert_int_equal(model_take_evictions(m, S, list, 8), 1);
	model_remove_pod(m, opportunistic);
	json_decref(opportunistic);
	assert_int_equal(model_take_cooldown(m, &cooldown), 1);
	assert_string_equal(cooldown.node, "n");
	char *text = cooldown.text;
	assert_int_equal(model_take_cooldown(m, &cooldown), 0);
	/* It could not be written. */
	model_cooldown_retry(m, "n");
	model_cooldown_retry(m, "no such node");
	assert_int_equal(model_take_cooldown(m, &cooldown), 1);
	assert_string_equal(cooldown.text, text);
	free(cooldown.text);
	assert_int_equal(model_take_cooldown(m, &cooldown), 0);
	return text;
}

static void test_a_successor_knows(void **state)
{
	struct model *m = model_by_use();
	char *text = send_away(m);
	assert_false(fits(m));
	model_free(m);
	m = model_by_use();
	model_advance(m, 100 * S);
	model_set_wall(m, WALL + 30);
	say(m, 3, 0, text);
	/* By promises there is room; the training is gone. */
	assert_true(fits(m));
	say(m, 4, 0, text);
	assert_false(fits(m));
	model_advance(m, (100 + 569) * S);
	say(m, 5, 0, text);
	assert_false(fits(m));
	model_advance(m, (100 + 571) * S);
	say(m, 6, 0, text);
	assert_true(fits(m));
	model_free(m);
	/* Without what the node says of it the successor would not know. */
	m = model_by_use();
	model_advance(m, 100 * S);
	model_set_wall(m, WALL + 30);
	say(m, 3, 0, NULL);
	say(m, 4, 0, NULL);
	assert_true(fits(m));
	/* It comes later, as of another replica that led. */
	say(m, 5, 0, text);
	assert_false(fits(m));
	/* The annotation is taken away by hand. */
	say(m, 6, 0, NULL);
	assert_true(fits(m));
	model_free(m);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_one_to_the_next),
		cmocka_unit_test(test_what_is_over),
		cmocka_unit_test(test_what_is_wrong),
		cmocka_unit_test(test_a_successor_knows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
