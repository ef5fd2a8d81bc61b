/*
 * A cluster at random: pods are made, filtered, bound, fail, end, in any order, while events come late, twice or not at all.
 * No card is ever given away by a byte or a percent more than it has, nor more than a quota lets the namespace have, whatever
 * order that was; and a model that has seen it all is the same as one that sees the end alone.
 */
#include <errno.h>

#include "../cluster.h"
#include "policy/placement/room.h"
#include "scheduler/model/model_inside.h"
#include "kube/hami/annotations.h"
#include "verbs.h"

#define NODES 6
#define CARDS 4
#define PODS 60
#define STEPS 1500
#define ROUNDS 60

static uint64_t seed;

static unsigned below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % n);
}

/* ---- the cluster as it is, of which the model hears ---- */

struct cluster {
	json_t *node[NODES], *pod[PODS]; /* NULL: there is none */
	unsigned made;                   /* pods, so far */
	unsigned placed, refused;
	bool has_quotas; /* they change as well */
	unsigned over;   /* refused by a quota */
	uint64_t now_ns;
	struct model *model;
};

static json_t *random_node(unsigned i)
{
	char name[8];
	snprintf(name, sizeof(name), "n%u", i);
	json_t *node = node_object(name, 1 + below(CARDS), 1000 * (1 + below(3)),
				   100 + 50 * below(2));
	if (!below(4)) {
		char cordoned[16];
		snprintf(cordoned, sizeof(cordoned), "%s-%u", name, below(CARDS));
		annotate(node, KUBE_NODE_CORDON, cordoned);
	}
	return node;
}

#define COUNT(n) "\"nvidia.com/gpu\":\"" n "\""
#define MEMORY(n) "\"nvidia.com/gpumem\":\"" n "\""
#define PERCENT(n) "\"nvidia.com/gpumem-percentage\":\"" n "\""
#define CORES(n) "\"nvidia.com/gpucores\":\"" n "\""
#define VCUDA "\"tencent.com/vcuda-core\":\"25\",\"tencent.com/vcuda-memory\":\"2\""

static void random_limits(char *text, size_t size)
{
	static const char *const alone[] = { COUNT("1"),    COUNT("2"), MEMORY("333"),
					     PERCENT("33"), VCUDA,      "\"cpu\":\"1\"" };
	static const char *const pairs[][2] = { { MEMORY("1000"), CORES("33") },
						{ PERCENT("7"), CORES("100") },
						{ MEMORY("1"), CORES("45") },
						{ COUNT("3"), MEMORY("500") } };
	unsigned which = below(10);
	if (which < 6)
		snprintf(text, size, "%s", alone[which]);
	else
		snprintf(text, size, "%s,%s", pairs[which - 6][0], pairs[which - 6][1]);
}

static json_t *random_pod(struct cluster *c)
{
	static const char *const policies[] = { "binpack", "spread",       "topology-aware",
						"mutex",   "numa,binpack", "fragmentation" };
	char limits[4][128];
	for (unsigned i = 0; i < 4; i++)
		random_limits(limits[i], sizeof(limits[i]));
	json_t *pod = object_of(
		"{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"ns\",\"uid\":\"uid-p%u\","
		"\"resourceVersion\":\"1\"},\"spec\":{\"initContainers\":["
		"{\"name\":\"i\",\"resources\":{\"limits\":{%s}}},"
		"{\"name\":\"j\",\"restartPolicy\":\"%s\",\"resources\":{\"limits\":{%s}}}],"
		"\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{%s}}},"
		"{\"name\":\"b\",\"resources\":{\"limits\":{%s}}}]},"
		"\"status\":{\"phase\":\"Pending\"}}",
		c->made, c->made, below(3) ? "" : limits[0], below(2) ? "Always" : "",
		below(3) ? "" : limits[1], limits[2], below(2) ? "" : limits[3]);
	c->made++;
	annotate(pod, "hami.io/gpu-scheduler-policy", policies[below(6)]);
	if (!below(5))
		annotate(pod, "nvidia.com/numa-bind", "true");
	return pod;
}

static void tell_pod(struct cluster *c, json_t *pod)
{
	struct error err;
	if (model_update_pod(c->model, pod, &err) < 0)
		fail_msg("%s", err.text);
}

/* ---- what must hold ---- */

static void check_card(void *data, const struct model_card_view *view)
{
	const struct place_card *card = view->card;
	/* Cards change under the pods that are on them: what fits no more was not given away by us. */
	if (*(const bool *)data)
		return;
	assert_true(card->memory_used_bytes <= card->memory_total_bytes);
	assert_true(card->cores_used_mpct <= card->cores_total_mpct);
	assert_true(card->slots_used <= card->slots_total);
}

static struct model_quota_view quota_of(const struct model *m)
{
	struct model_quota_view view = { 0 };
	model_find_quota(m, "ns", &view);
	return view;
}

static json_t *cards_as_json;

static void note_card(void *data, const struct model_card_view *view)
{
	json_object_set_new(cards_as_json, view->card->uuid,
			    json_pack("[I,I,I,I]", (json_int_t)view->card->memory_used_bytes,
				      (json_int_t)view->card->cores_used_mpct,
				      (json_int_t)view->card->slots_used,
				      (json_int_t)view->card->is_cordoned));
}

static json_t *cards_of(const struct model *m)
{
	cards_as_json = json_object();
	model_each_card(m, note_card, NULL);
	return cards_as_json;
}

struct rooms {
	const struct place_histogram *histogram;
	uint64_t of[PLACE_KINDS_MAX];
};

/* The room that nodes are said to have, counted here card by card, and its price: all of it together is worth 1. */
static void add_room(void *data, void *thing)
{
	struct rooms *rooms = data;
	const struct model_node *node = thing;
	struct place_tally tally = { 0 };
	for (unsigned i = 0; i < node->inventory.count; i++) {
		struct place_fits fits;
		place_card_fits(rooms->histogram, &node->inventory.card[i], &fits);
		place_tally_add(rooms->histogram, &fits, &tally);
	}
	for (unsigned k = 0; k < rooms->histogram->count; k++) {
		rooms->of[k] += place_room(rooms->histogram, &tally, k);
		assert_int_equal(node->room ? place_room(rooms->histogram, node->room, k) : 0,
				 place_room(rooms->histogram, &tally, k));
	}
}

static void check_rooms(struct cluster *c)
{
	struct rooms rooms = { .histogram = model_histogram(c->model) };
	double worth = 0;
	assert_non_null(rooms.histogram);
	string_map_each(&c->model->nodes, add_room, &rooms);
	for (unsigned k = 0; k < rooms.histogram->count; k++)
		worth += rooms.histogram->kind[k].price * ((double)rooms.of[k] + 1);
	assert_true(worth > 1 - 1e-9 && worth < 1 + 1e-9);
}

/* One that has never seen anything but this. */
static void check_against_new(struct cluster *c)
{
	struct model *again = model_of_nothing();
	for (unsigned i = 0; i < PODS; i++) {
		if (!c->pod[i])
			continue;
		tell_pod(c, c->pod[i]);
		struct error err;
		assert_int_equal(model_update_pod(again, c->pod[i], &err), 0);
	}
	for (unsigned i = 0; i < NODES; i++)
		if (c->node[i]) {
			struct error err;
			assert_int_equal(model_update_node(again, c->node[i], &err), 0);
		}
	/* Nothing is reserved any more then, and nothing that was left behind holds. */
	c->now_ns += UINT64_C(1000) * 1000000000;
	model_advance(c->model, c->now_ns);
	model_advance(again, UINT64_C(1000) * 1000000000);
	json_t *a = cards_of(c->model), *b = cards_of(again);
	if (!json_equal(a, b))
		fail_msg("%s\n%s", json_dumps(a, JSON_SORT_KEYS), json_dumps(b, JSON_SORT_KEYS));
	json_decref(a);
	json_decref(b);
	give_quota(c->model, "all", "\"limits.nvidia.com/gpu\":\"1000000\"");
	give_quota(again, "all", "\"limits.nvidia.com/gpu\":\"1000000\"");
	const struct quota_amounts x = quota_of(c->model).used, y = quota_of(again).used;
	assert_memory_equal(&x, &y, sizeof(x));
	model_free(again);
}

/* Nobody was given more than what the quota lets them have; less than what they have takes nothing back. */
static void check_quota(const struct cluster *c, const struct model_quota_view *before)
{
	const struct model_quota_view now = quota_of(c->model);
	for (int k = 0; k < QUOTA_KINDS; k++)
		assert_true(!now.limits.has[k] || now.used.of[k] <= now.limits.most[k] ||
			    now.used.of[k] <= before->used.of[k]);
}

/* ---- steps ---- */

static void change_quota(struct cluster *c)
{
	static const struct {
		const char *resource;
		unsigned most;
	} rows[QUOTA_KINDS] = { { "gpumem", 20000 }, { "gpucores", 1500 }, { "gpu", 30 } };
	char hard[128];
	unsigned kind = below(QUOTA_KINDS);
	snprintf(hard, sizeof(hard), "\"limits.nvidia.com/%s\":\"%u\"", rows[kind].resource,
		 rows[kind].most / 8 + below(rows[kind].most));
	give_quota(c->model, below(2) ? "one" : "other", hard);
}

static void make_pod(struct cluster *c, unsigned i)
{
	if (c->pod[i])
		return;
	c->pod[i] = random_pod(c);
	if (below(3))
		tell_pod(c, c->pod[i]);
}

static void end_pod(struct cluster *c, unsigned i)
{
	json_t *pod = c->pod[i];
	if (!pod)
		return;
	if (below(2)) {
		json_object_set_new(json_object_get(pod, "status"), "phase", json_string("Failed"));
		tell_pod(c, pod);
	} else {
		model_remove_pod(c->model, pod);
	}
	json_decref(pod);
	c->pod[i] = NULL;
}

/* What the binding of it writes, or the half of it; and what comes of it. */
static void bind_pod(struct cluster *c, json_t *pod, const struct decision *d)
{
	char *shares = shares_format(&d->shares);
	unsigned how = below(4);
	if (how)
		allocate(pod, d->node, shares, how == 1 ? "failed" : "allocating", how > 2);
	if (how == 0 || how == 1)
		model_release(c->model, d->uid);
	if (below(3))
		tell_pod(c, pod);
	/* What was noted is seen some day, before its reservation is over. */
	if (how > 1)
		tell_pod(c, pod);
	free(shares);
}

/* What filter says, decide does. */
static void schedule_pod(struct cluster *c, unsigned i)
{
	json_t *pod = c->pod[i];
	char node[8];
	struct decision d;
	struct error err = { 0 };
	if (!pod || json_object_get(json_object_get(pod, "spec"), "nodeName"))
		return;
	snprintf(node, sizeof(node), "n%u", below(NODES));
	json_t *args = filter_args(json_incref(pod), node), *answer = verbs_filter(c->model, args);
	bool fits = *fitting(answer);
	const struct model_quota_view before = quota_of(c->model);
	json_t *bind = bind_args(
		json_string_value(json_object_get(json_object_get(pod, "metadata"), "name")), node);
	int r = extender_decide(c->model, bind, c->now_ns, &d, &err);
	if ((r == 0) != fits)
		fail_msg("%s fits: %d, and then: %d %s: %s", node, fits, r, err.text,
			 json_dumps(args, 0));
	assert_true(fits || *reason_of(answer, node));
	check_quota(c, &before);
	c->over += strstr(reason_of(answer, node), "ResourceQuotaNotFit") != NULL;
	c->placed += r == 0 && d.shares.count;
	c->refused += r == -ENOSPC;
	if (r == 0) {
		bind_pod(c, pod, &d);
		decision_free(&d);
	}
	json_decref(bind);
	json_decref(answer);
	json_decref(args);
}

static void change_node(struct cluster *c, unsigned i, bool *is_changed)
{
	char name[8];
	struct error err;
	snprintf(name, sizeof(name), "n%u", i);
	*is_changed = true;
	json_decref(c->node[i]);
	c->node[i] = below(3) ? random_node(i) : NULL;
	if (c->node[i])
		assert_int_equal(model_update_node(c->model, c->node[i], &err), 0);
	else
		model_remove_node(c->model, name);
}

static void relist(struct cluster *c)
{
	model_list_begin(c->model, MODEL_PODS);
	for (unsigned i = 0; i < PODS; i++)
		if (c->pod[i])
			tell_pod(c, c->pod[i]);
	model_list_end(c->model, MODEL_PODS);
}

static void step(struct cluster *c, bool *is_changed, bool may_change)
{
	unsigned pod = below(PODS);
	c->now_ns += UINT64_C(1000000) * below(2000);
	model_advance(c->model, c->now_ns);
	if (c->has_quotas && !below(20))
		change_quota(c);
	switch (below(12)) {
	case 0:
	case 1: end_pod(c, pod); break;
	case 2:
	case 3:
	case 4: make_pod(c, pod); break;
	case 5:
		if (c->pod[pod])
			tell_pod(c, c->pod[pod]);
		break;
	case 6:
		if (may_change && !below(10))
			change_node(c, below(NODES), is_changed);
		if (!below(20))
			relist(c);
		break;
	default: schedule_pod(c, pod);
	}
}

/* How often a quota was in the way. */
static unsigned run(bool may_change, bool has_quotas)
{
	struct cluster c = { .model = model_of_nothing(), .has_quotas = has_quotas };
	bool is_changed = false;
	for (unsigned i = 0; i < NODES; i++) {
		struct error err;
		c.node[i] = random_node(i);
		assert_int_equal(model_update_node(c.model, c.node[i], &err), 0);
	}
	for (unsigned i = 0; i < STEPS; i++) {
		step(&c, &is_changed, may_change);
		model_each_card(c.model, check_card, &is_changed);
		if (i % 64 == 63)
			check_rooms(&c);
	}
	check_against_new(&c);
	/* Cards were given away, and were full. */
	assert_true(c.placed > 20 && c.refused > 20);
	for (unsigned i = 0; i < PODS; i++)
		json_decref(c.pod[i]);
	for (unsigned i = 0; i < NODES; i++)
		json_decref(c.node[i]);
	model_free(c.model);
	return c.over;
}

static void test_never_too_much(void **state)
{
	for (seed = 1; seed < ROUNDS; seed += 2) {
		uint64_t of = seed;
		assert_int_equal(run(false, false), 0);
		seed = of;
	}
}

static void test_any_order(void **state)
{
	for (seed = 2; seed < ROUNDS; seed += 2) {
		uint64_t of = seed;
		assert_int_equal(run(true, false), 0);
		seed = of;
	}
}

static void test_within_quotas(void **state)
{
	unsigned over = 0;
	for (seed = 3; seed < ROUNDS; seed += 2) {
		uint64_t of = seed;
		over += run(of % 4 == 3, true);
		seed = of;
	}
	assert_true(over > 20 * ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_never_too_much),
					    cmocka_unit_test(test_any_order),
					    cmocka_unit_test(test_within_quotas) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
