/* Implements the verb prioritize, and what all verbs of the extender share. */
#include "scheduler/extender/extender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/placement/score.h"
#include "scheduler/extender/extender_inside.h"

#define SCORE_MOST 10

int extender_call_begin(struct model *m, const json_t *args, struct extender_call *ret,
			struct error *err)
{
	json_t *object = json_object_get(args, "Pod");
	struct extender_call call = { 0 };
	int r = model_check_ready(m, err);
	if (r < 0)
		return r;
	if (!json_is_object(object))
		return error_set(err, EINVAL, "Pod: must be an object");
	r = pod_read(object, &call.pod, err);
	if (r < 0)
		return error_add(err, r, "Pod");
	r = request_read(call.pod, &m->terms.request, &call.request, &call.request_error);
	if (r == -ENOMEM) {
		pod_free(call.pod);
		return error_set_errno(err, ENOMEM, "Pod");
	}
	call.suspended = model_find_pod(m, call.pod->uid);
	if (call.suspended)
		model_suspend_charge(call.suspended);
	*ret = call;
	return 0;
}

void extender_call_end(struct extender_call *call)
{
	if (call->suspended)
		model_restore_charge(call->suspended);
	request_free(&call->request);
	pod_free(call->pod);
	*call = (struct extender_call){ 0 };
}

int32_t extender_call_priority(const struct extender_call *call)
{
	const json_t *spec = json_object_get(call->pod->object, "spec");
	return (int32_t)json_integer_value(json_object_get(spec, "priority"));
}

int inventory_of_object(struct model *m, const json_t *node, struct inventory *ret,
			struct error *err)
{
	struct inventory inventory;
	const struct inventory_source source = model_node_source(m, node);
	const json_t *meta = json_object_get(node, "metadata");
	const char *name = json_string_value(json_object_get(meta, "name"));
	const struct model_node *known = name ? string_map_find(&m->nodes, name) : NULL;
	int r = inventory_read(&source, &m->strings, &inventory, err);
	if (r < 0)
		return r;
	for (const struct model_pod *p = known ? known->pods : NULL; p; p = p->next)
		inventory_charge(&inventory, &p->charged->shares);
	*ret = inventory;
	return 0;
}

/*
 * Weight of a node's fullness in its score. Among nodes where the pod takes equally valuable room from other requests
 * (policy/placement/room.h), the fuller one wins. The weight never outweighs the loss of room for one request.
 */
#define TIE 1e-12

/* Higher is better, except for REQUEST_NODES_SPREAD. Without a histogram, uses HAMi's formula. */
static double score_cards(struct model *m, const struct place_histogram *histogram,
			  const struct inventory *inventory, const struct place_tally *room)
{
	double score = place_cards_score(inventory->card, inventory->count);
	return histogram ? TIE * score - model_room_loss(m, inventory, room) : score;
}

static double score_of(struct model *m, const struct place_histogram *histogram,
		       const struct call_args *args, size_t i)
{
	const char *name = args->name[i].text;
	const double none = histogram ? -MODEL_ROOM_ALL : 0; /* score of a node without cards */
	struct inventory inventory = { 0 };
	if (!args->whole) {
		const struct model_node *node = name ? model_find_node(m, name) : NULL;
		return node ? score_cards(m, histogram, &node->inventory, node->room) : none;
	}
	if (inventory_of_object(m, json_array_get(args->whole, i), &inventory, NULL) < 0)
		return none;
	double score = score_cards(m, histogram, &inventory, NULL);
	inventory_free(&inventory);
	model_room_strings_freed(m);
	return score;
}

/* Only the best score gets 10. Other scores get 0 to 9 in proportion. */
static int rank(double score, double best, double worst)
{
	if (score == best)
		return SCORE_MOST;
	return (int)((SCORE_MOST - 1) * (score - worst) / (best - worst));
}

#define RANK_OF "{\"Host\":"
#define RANK_IS ",\"Score\":"
#define RANK_SIZE \
	(sizeof(RANK_OF RANK_IS "10},") - 1) /* upper bound for one entry, without the name */

static char *write_ranks(const struct call_args *args, const double *score, bool is_spread)
{
	const size_t count = args->count;
	double most = count ? score[0] : 0, least = most;
	size_t size = sizeof("[]");
	for (size_t i = 0; i < count; i++) {
		most = score[i] > most ? score[i] : most;
		least = score[i] < least ? score[i] : least;
		size += RANK_SIZE + call_name_size(&args->name[i]);
	}
	char *text = malloc(size), *to = text;
	if (!text)
		return NULL;
	*to++ = '[';
	for (size_t i = 0; i < count; i++) {
		int is = is_spread ? rank(score[i], least, most) : rank(score[i], most, least);
		to = stpcpy(to, i ? "," RANK_OF : RANK_OF);
		to = call_name_put(to, &args->name[i]);
		to = stpcpy(to, RANK_IS);
		to = stpcpy(to, is == SCORE_MOST ? "10" : (const char[]){ (char)('0' + is), '\0' });
		*to++ = '}';
	}
	strcpy(to, "]");
	return text;
}

char *extender_prioritize(struct model *m, const struct call_args *args)
{
	cleanup_free double *score = calloc(args->count + 1, sizeof(*score));
	struct extender_call call;
	if (!score)
		return NULL;
	/* The answer has no place for an error, so all nodes get the same score. */
	if (extender_call_begin(m, args->object, &call, NULL) < 0)
		return write_ranks(args, score, false);
	const struct place_histogram *histogram = NULL;
	if (call.request.node_policy == REQUEST_NODES_FRAGMENTATION && call.request.count)
		histogram = model_histogram(m);
	fit_begin(&m->fit, &call.request);
	for (size_t i = 0; i < args->count; i++)
		score[i] = score_of(m, histogram, args, i);
	char *text = write_ranks(args, score, call.request.node_policy == REQUEST_NODES_SPREAD);
	extender_call_end(&call);
	return text;
}
