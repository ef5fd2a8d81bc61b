/*
 * Opportunistic pods and ordinary pods at random, on nodes whose use is said, grows old, jumps up and down. Memory, slots and promised time
 * are never given twice; for ordinary pods it is as if opportunistic pods wanted no time at all; and no more of these are sent away than
 * lacked something.
 */
#include <errno.h>

#include "../cluster.h"
#include "kube/hami/annotations.h"
#include "verbs.h"

#define S UINT64_C(1000000000)
#define NODES 4
#define CARDS 2
#define PODS 40
#define STEPS 3000
#define ROUNDS 25
#define PATIENCE_S 60

static uint64_t seed;

static unsigned below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % n);
}

struct cluster {
	struct model *model; /* places by use */
	struct model *twin;  /* does not, and is told the same */
	json_t *pod[PODS];
	bool is_opportunistic[PODS];
	unsigned made, at;
	uint64_t now_s;
	unsigned now_pct[NODES][CARDS];
	unsigned placed, filled, sent, displaced;
};

static struct model *new_model(bool places_by_use)
{
	struct model *m;
	struct model_terms terms = { .request = request_terms_default };
	terms.request.places_by_use = places_by_use;
	assert_int_equal(model_new(&terms, &m), 0);
	for (enum model_kind kind = MODEL_NODES; kind <= MODEL_PODS; kind++) {
		model_list_begin(m, kind);
		model_list_end(m, kind);
	}
	return m;
}

static void name_node(unsigned i, char name[8])
{
	snprintf(name, 8, "n%u", i);
}

/* ---- what happens ---- */

static void say_node(struct cluster *c, unsigned i)
{
	char name[8], text[400];
	int at;
	name_node(i, name);
	json_t *node = node_object(name, CARDS, 4000, 100);
	at = snprintf(text, sizeof(text), "{\"t\":%u,\"cards\":[", ++c->at);
	for (unsigned k = 0; k < CARDS; k++) {
		c->now_pct[i][k] = below(101);
		at += snprintf(text + at, sizeof(text) - (size_t)at,
			       "%s{\"id\":\"%s-%u\",\"peak\":%u,\"now\":%u,\"held\":%u,\"mem\":0}",
			       k ? "," : "", name, k, below(101), c->now_pct[i][k], below(101));
	}
	snprintf(text + at, sizeof(text) - (size_t)at, "]}");
	if (below(10))
		annotate(node, KUBE_NODE_USE, text);
	give_node(c->twin, json_incref(node));
	give_node(c->model, node);
}

static void tell_pod(struct cluster *c, unsigned i)
{
	give_pod(c->model, json_incref(c->pod[i]));
	give_pod(c->twin, json_incref(c->pod[i]));
}

static void make_pod(struct cluster *c, unsigned i)
{
	static const unsigned cores[] = { 0, 10, 20, 40, 80, 100 };
	char name[16], limits[120];
	if (c->pod[i])
		return;
	snprintf(name, sizeof(name), "p%u", c->made++);
	snprintf(limits, sizeof(limits),
		 "\"nvidia.com/gpu\":\"%u\",\"nvidia.com/gpumem\":\"%u\",\"nvidia.com/gpucores\":\"%u\"",
		 1 + below(2), 100 * (1 + below(15)), cores[below(6)]);
	c->pod[i] = pod_object(name, limits);
	c->is_opportunistic[i] = below(2);
	if (c->is_opportunistic[i])
		annotate(c->pod[i], "allot.dev/placement", "use");
	json_object_set_new(json_object_get(c->pod[i], "spec"), "priority", json_integer(below(3)));
	/* Here opportunistic pods alone are to go for others. */
	json_object_set_new(json_object_get(c->pod[i], "spec"), "preemptionPolicy",
			    json_string("Never"));
	tell_pod(c, i);
}

static void end_pod(struct cluster *c, unsigned i)
{
	if (!c->pod[i])
		return;
	model_remove_pod(c->model, c->pod[i]);
	model_remove_pod(c->twin, c->pod[i]);
	json_decref(c->pod[i]);
	c->pod[i] = NULL;
}

static bool is_bound(const json_t *pod)
{
	return json_object_get(json_object_get(pod, "spec"), "nodeName");
}

static const char *name_of(const json_t *pod)
{
	return json_string_value(json_object_get(json_object_get(pod, "metadata"), "name"));
}

static void write_down(struct cluster *c, unsigned i, const struct decision *d)
{
	char *shares = shares_format(&d->shares), *borrowed = shares_format_borrowed(&d->shares);
	bool borrows = shares_have_borrowed(&d->shares);
	assert_true(!borrows || c->is_opportunistic[i]);
	allocate(c->pod[i], d->node, shares, "success", true);
	if (borrows)
		annotate(c->pod[i], "allot.dev/borrowed", borrowed);
	tell_pod(c, i);
	c->placed++;
	c->filled += borrows;
	free(shares);
	free(borrowed);
}

static void schedule_pod(struct cluster *c, unsigned i)
{
	char node[8];
	struct decision d;
	struct error err = { 0 };
	if (!c->pod[i] || is_bound(c->pod[i]))
		return;
	name_node(below(NODES), node);
	json_t *args = filter_args(json_incref(c->pod[i]), node);
	json_t *answer = verbs_filter(c->model, args), *other = verbs_filter(c->twin, args);
	bool fits = *fitting(answer);
	if (!c->is_opportunistic[i] && !json_equal(answer, other))
		fail_msg("%s, without fillers' time %s", json_dumps(answer, 0),
			 json_dumps(other, 0));
	json_t *bind = bind_args(name_of(c->pod[i]), node);
	int r = extender_decide(c->model, bind, c->now_s * S, &d, &err);
	assert_int_equal(r, fits ? 0 : -ENOSPC);
	if (r == 0) {
		write_down(c, i, &d);
		decision_free(&d);
	}
	json_decref(bind);
	json_decref(answer);
	json_decref(other);
	json_decref(args);
}

/* ---- what must hold ---- */

static void check_card(void *data, const struct model_card_view *view)
{
	const struct place_card *card = view->card;
	assert_true(card->memory_used_bytes <= card->memory_total_bytes);
	assert_true(card->cores_used_mpct <= card->cores_total_mpct);
	assert_true(card->slots_used <= card->slots_total);
}

static void check_eviction(struct cluster *c, const struct model_eviction *e)
{
	unsigned i = 0;
	while (i < PODS && (!c->pod[i] || strcmp(name_of(c->pod[i]), e->name) != 0))
		i++;
	assert_true(i < PODS && c->is_opportunistic[i] && is_bound(c->pod[i]));
	c->displaced += e->is_displaced;
	c->sent += !e->is_displaced;
	if (!e->is_displaced) {
		unsigned node = (unsigned)(e->node[1] - '0');
		unsigned card = (unsigned)(e->card[strlen(e->card) - 1] - '0');
		assert_int_equal(e->used_pct, c->now_pct[node][card]);
		assert_true(e->used_pct + e->requested_pct > 100);
	}
	if (below(3))
		end_pod(c, i); /* else it is refused, or takes its time */
}

static void evict(struct cluster *c)
{
	struct model_eviction list[4];
	struct model_eviction copy[4];
	char names[4][16];
	size_t count = model_take_evictions(c->model, PATIENCE_S * S, list, 1 + below(4));
	assert_true(count <= 4);
	/* Ending one ends what the list points to. */
	char nodes[4][16], cards[4][16];
	for (size_t i = 0; i < count; i++) {
		copy[i] = list[i];
		snprintf(names[i], sizeof(names[i]), "%s", list[i].name);
		snprintf(nodes[i], sizeof(nodes[i]), "%s", list[i].node);
		snprintf(cards[i], sizeof(cards[i]), "%s", list[i].card ? list[i].card : "");
		copy[i].name = names[i];
		copy[i].node = nodes[i];
		copy[i].card = cards[i];
	}
	for (size_t i = 0; i < count; i++)
		check_eviction(c, &copy[i]);
	/* Whoever was named is not named again at once. */
	assert_int_equal(model_take_evictions(c->model, PATIENCE_S * S, list, 0), 0);
}

static void step(struct cluster *c)
{
	unsigned pod = below(PODS);
	c->now_s += below(20);
	model_advance(c->model, c->now_s * S);
	model_advance(c->twin, c->now_s * S);
	switch (below(10)) {
	case 0: end_pod(c, pod); break;
	case 1:
	case 2: make_pod(c, pod); break;
	case 3: say_node(c, below(NODES)); break;
	case 4: evict(c); break;
	default: schedule_pod(c, pod);
	}
	model_each_card(c->model, check_card, NULL);
}

static void test_soak(void **state)
{
	unsigned placed = 0, filled = 0, sent = 0, displaced = 0;
	for (unsigned round = 1; round <= ROUNDS; round++) {
		struct cluster c = { .model = new_model(true), .twin = new_model(false) };
		seed = round;
		for (unsigned i = 0; i < NODES; i++)
			say_node(&c, i);
		for (unsigned i = 0; i < STEPS; i++)
			step(&c);
		/* All has gone: nothing is left behind. */
		for (unsigned i = 0; i < PODS; i++)
			end_pod(&c, i);
		assert_int_equal(model_counts(c.model).pods, 0);
		placed += c.placed;
		filled += c.filled;
		sent += c.sent;
		displaced += c.displaced;
		/* A card is shut for ten minutes and longer after each round of them. */
		assert_true(c.sent <= NODES * CARDS * 10 * (2 + c.now_s / 600));
		model_free(c.model);
		model_free(c.twin);
	}
	print_message("%u placed, %u of them by use, %u sent away, %u for others' sake\n", placed,
		      filled, sent, displaced);
	assert_true(placed > 1000 && filled > 150 && sent > 50 && displaced > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_soak) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
