/* What the extender's verbs share, and prioritize. */
#include "sched/extender.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "place/score.h"
#include "sched/extender_inside.h"

#define SCORE_MOST 10

/* ---- what was asked ---- */

int ask_begin(struct model *m, const json_t *args, struct ask *ret, struct error *err)
{
	json_t *object = json_object_get(args, "Pod");
	struct ask ask = { 0 };
	if (!model_is_ready(m))
		return error_set(err, EAGAIN, "the cluster's nodes and pods are not known yet");
	if (!json_is_object(object))
		return error_set(err, EINVAL, "Pod: must be an object");
	int r = pod_read(object, &ask.pod, err);
	if (r < 0)
		return error_add(err, r, "Pod");
	r = request_read(ask.pod, &m->terms.request, &ask.request, &ask.broken);
	if (r == -ENOMEM) {
		pod_free(ask.pod);
		return error_set_errno(err, ENOMEM, "Pod");
	}
	ask.lifted = model_find_pod(m, ask.pod->uid);
	if (ask.lifted)
		model_lift(ask.lifted);
	*ret = ask;
	return 0;
}

void ask_end(struct ask *ask)
{
	if (ask->lifted)
		model_put_back(ask->lifted);
	request_free(&ask->request);
	pod_free(ask->pod);
	*ask = (struct ask){ 0 };
}

struct asked_nodes asked_nodes(const json_t *args)
{
	const json_t *list = json_object_get(args, "Nodes");
	const json_t *whole = json_object_get(list, "items");
	const json_t *names = json_object_get(args, "NodeNames");
	if (json_is_object(list))
		return (struct asked_nodes){ .whole = whole };
	return (struct asked_nodes){ .names = names };
}

size_t asked_count(const struct asked_nodes *nodes)
{
	return json_array_size(nodes->whole ? nodes->whole : nodes->names);
}

const char *asked_name(const struct asked_nodes *nodes, size_t i)
{
	if (!nodes->whole)
		return json_string_value(json_array_get(nodes->names, i));
	const json_t *meta = json_object_get(json_array_get(nodes->whole, i), "metadata");
	return json_string_value(json_object_get(meta, "name"));
}

int asked_stock(struct model *m, const json_t *node, struct stock *ret, struct error *err)
{
	struct stock stock;
	const struct stock_said said = model_node_said(node);
	const json_t *meta = json_object_get(node, "metadata");
	const char *name = json_string_value(json_object_get(meta, "name"));
	const struct model_node *known = name ? table_find(&m->nodes, name) : NULL;
	int r = stock_read(&said, &m->words, &stock, err);
	if (r < 0)
		return r;
	for (const struct model_pod *p = known ? known->pods : NULL; p; p = p->next)
		stock_charge(&stock, &p->charged->hold);
	*ret = stock;
	return 0;
}

/* ---- prioritize ---- */

/* Of what takes the same of the room, the fuller node: less than any request of a kind that is asked for is worth. */
#define TIE 1e-12

/* Higher is better but for REQUEST_NODES_SPREAD. `mix` NULL: HAMi's score. */
static double score_cards(struct model *m, const struct place_mix *mix, const struct stock *stock,
			  const struct place_tally *room)
{
	double score = place_cards_score(stock->card, stock->count);
	return mix ? TIE * score - model_room_loss(m, stock, room) : score;
}

static double score_of(struct model *m, const struct place_mix *mix,
		       const struct asked_nodes *nodes, size_t i)
{
	const char *name = asked_name(nodes, i);
	const double none = mix ? -MODEL_ROOM_ALL : 0; /* of no cards */
	struct stock stock = { 0 };
	if (!nodes->whole) {
		const struct model_node *node = name ? model_find_node(m, name) : NULL;
		return node ? score_cards(m, mix, &node->stock, node->room) : none;
	}
	if (asked_stock(m, json_array_get(nodes->whole, i), &stock, NULL) < 0)
		return none;
	double score = score_cards(m, mix, &stock, NULL);
	stock_free(&stock);
	model_room_words_gone(m);
	return score;
}

/* The best is 10, and it alone; the others have what is proportional of 0 to 9. */
static int rank(double score, double best, double worst)
{
	if (score == best)
		return SCORE_MOST;
	return (int)((SCORE_MOST - 1) * (score - worst) / (best - worst));
}

/* {"Host","Score"}: both are there already, and only get a reference more. NULL: no memory. */
static json_t *make_rank(const struct asked_nodes *nodes, size_t i, json_t *score)
{
	json_t *name = nodes->whole ? NULL : json_array_get(nodes->names, i);
	const char *of_whole = nodes->whole ? asked_name(nodes, i) : NULL;
	json_t *one = json_object();
	if (json_is_string(name))
		json_object_set_nocheck(one, "Host", name);
	else
		json_object_set_new(one, "Host", json_string(of_whole ? of_whole : ""));
	if (json_object_set_nocheck(one, "Score", score) < 0) {
		json_decref(one);
		return NULL;
	}
	return one;
}

static json_t *make_ranks(const struct asked_nodes *nodes, const double *score, size_t count,
			  bool is_spread)
{
	double most = count ? score[0] : 0, least = most;
	json_t *list = json_array(), *ranks[SCORE_MOST + 1];
	for (unsigned r = 0; r <= SCORE_MOST; r++)
		ranks[r] = json_integer(r);
	for (size_t i = 1; i < count; i++) {
		most = score[i] > most ? score[i] : most;
		least = score[i] < least ? score[i] : least;
	}
	for (size_t i = 0; list && i < count; i++) {
		int is = is_spread ? rank(score[i], least, most) : rank(score[i], most, least);
		if (json_array_append_new(list, make_rank(nodes, i, ranks[is])) < 0) {
			json_decref(list);
			list = NULL;
		}
	}
	for (unsigned r = 0; r <= SCORE_MOST; r++)
		json_decref(ranks[r]);
	return list;
}

json_t *extender_prioritize(struct model *m, const json_t *args)
{
	const struct asked_nodes nodes = asked_nodes(args);
	size_t count = asked_count(&nodes);
	cleanup_free double *score = calloc(count + 1, sizeof(*score));
	struct ask ask;
	if (!score)
		return NULL;
	/* The answer has no place for an error: nodes that nothing is known of are all alike. */
	if (ask_begin(m, args, &ask, NULL) < 0)
		return make_ranks(&nodes, score, count, false);
	const struct place_mix *mix = NULL;
	if (ask.request.nodes == REQUEST_NODES_FRAGMENTATION && ask.request.count)
		mix = model_mix(m);
	fit_begin(&m->fit, &ask.request);
	for (size_t i = 0; i < count; i++)
		score[i] = score_of(m, mix, &nodes, i);
	json_t *list = make_ranks(&nodes, score, count, ask.request.nodes == REQUEST_NODES_SPREAD);
	ask_end(&ask);
	return list;
}
