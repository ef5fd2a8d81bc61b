/* The verb filter: which nodes a pod fits, and why not the others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/extender.h"
#include "sched/extender_gang.h"
#include "sched/model_gang.h"

#define REASON_MAX 320
/* Nodes are much alike: so many different reasons are kept, to be said again. */
#define TEXTS_KEPT 64

/* HAMi's word for a node whose cards nobody has told of. */
#define UNREGISTERED "node unregistered"

/* ---- reasons ---- */

struct kept_text {
	unsigned char cards, lacks, of[PLACE_REASON_COUNT]; /* how many cards have each reason */
	json_t *text;                                       /* NULL: free */
};

struct filtering {
	struct model *model;
	const struct ask *ask;
	json_t *fit, *failed, *hopeless;
	struct gang_answer gang; /* what its gang says */
	json_t *gang_text;
	struct kept_text kept[TEXTS_KEPT];
};

static struct kept_text count_reasons(const struct stock *stock, const struct fit_reasons *reasons)
{
	struct kept_text key;
	memset(&key, 0, sizeof(key)); /* its padding too: it is compared whole */
	key.cards = (unsigned char)stock->count;
	key.lacks = reasons->part->place.count > stock->count;
	for (unsigned i = 0; i < stock->count; i++)
		key.of[reasons->reason[i]]++;
	return key;
}

/* A new reference; NULL: no memory. */
static json_t *text_of(struct filtering *f, const struct stock *stock,
		       const struct fit_reasons *reasons)
{
	struct kept_text key = count_reasons(stock, reasons);
	char text[REASON_MAX];
	unsigned slot = 0;
	for (unsigned i = 0; i < sizeof(key.of); i++)
		slot = slot * 31 + key.of[i];
	struct kept_text *kept = &f->kept[(slot * 31 + key.cards) % TEXTS_KEPT];
	if (!kept->text || memcmp(&key, kept, offsetof(struct kept_text, text)) != 0) {
		fit_reasons_text(stock, reasons, text, sizeof(text));
		json_decref(kept->text);
		*kept = key;
		kept->text = json_string(text);
	}
	return json_incref(kept->text);
}

/* ---- nodes ---- */

static void say(json_t *to, const char *name, const char *why)
{
	json_object_set_new(to, name, json_string(why));
}

/* Does it fit? Else why not is said. */
static bool judge(struct filtering *f, const char *name, const struct stock *stock)
{
	struct fit_reasons reasons;
	if (!stock->count) {
		say(f->hopeless, name, UNREGISTERED);
		return false;
	}
	if (fit_check(&f->model->fit, stock, &reasons))
		return true;
	bool is_curable = fit_is_curable(stock, &reasons);
	json_object_set_new(is_curable ? f->failed : f->hopeless, name, text_of(f, stock, &reasons));
	return false;
}

/* One that came by its name. */
static bool judge_known(struct filtering *f, const char *name)
{
	const struct model_node *node = model_find_node(f->model, name);
	if (node && node->aside) {
		say(f->hopeless, name, node->aside);
		return false;
	}
	static const struct stock none;
	if (!judge(f, name, node ? &node->stock : &none))
		return false;
	if (!node || !model_ward_bars(f->model, node, f->ask->lifted))
		return true;
	char text[REASON_MAX];
	snprintf(text, sizeof(text), EXTENDER_WARDED, model_ward_name(f->model));
	say(f->failed, name, text);
	return false;
}

/* One that came whole. */
static bool judge_whole(struct filtering *f, const char *name, const json_t *node)
{
	struct stock stock = { 0 };
	struct error err = { 0 };
	int r = asked_stock(f->model, node, &stock, &err);
	if (r < 0 && r != -ENODATA) {
		say(f->hopeless, name, err.text);
		return false;
	}
	bool fits = judge(f, name, &stock);
	stock_free(&stock);
	fit_words_gone(&f->model->fit);
	return fits;
}

/* One that its gang has a word in: it may have that node alone, or none yet. */
static bool judge_for_gang(struct filtering *f, const char *name)
{
	const struct gang_answer *gang = &f->gang;
	if (gang->word == GANG_AT_NODE && !strcmp(name, gang->node))
		return true;
	/* What the node itself lacks is said first: the end of others may help there. */
	if (gang->word != GANG_NOT_NOW || judge_known(f, name))
		json_object_set(f->hopeless, name, f->gang_text);
	return false;
}

static void judge_all(struct filtering *f, const struct asked_nodes *nodes)
{
	const json_t *list = nodes->whole ? nodes->whole : nodes->names;
	json_t *one;
	size_t i;
	fit_begin(&f->model->fit, &f->ask->request);
	model_hold_to_quota(f->model, f->ask->pod->pod_namespace);
	json_array_foreach(list, i, one)
	{
		const char *name = asked_name(nodes, i);
		bool fits = false;
		if (!name)
			continue;
		if (f->ask->broken.code)
			say(f->hopeless, name, f->ask->broken.text);
		else if (!f->ask->request.count)
			fits = true;
		else if (f->gang.word != GANG_AS_ANY)
			fits = judge_for_gang(f, name);
		else
			fits = nodes->whole ? judge_whole(f, name, one) : judge_known(f, name);
		if (fits)
			json_array_append(f->fit, one);
	}
}

/* ---- who is in the way ---- */

#define DISPLACE_NODES_MOST 64 /* are looked at, of those that fillers are on or may be */

/* No node fits: is it for fillers, which are there on sufferance? What ends for others' sake is looked at on the first such node. */
static void look_for_fillers(struct filtering *f)
{
	unsigned looked_at = 0;
	const char *name;
	json_t *why;
	if (!f->model->terms.request.places_by_use || f->ask->request.is_filler)
		return;
	json_object_foreach(f->failed, name, why)
	{
		if (looked_at++ == DISPLACE_NODES_MOST ||
		    model_want(f->model, &f->ask->request, f->ask->pod->uid, name))
			return;
	}
}

/* ---- the answer ---- */

static json_t *make_answer(const struct filtering *f, const struct asked_nodes *nodes,
			   const char *error)
{
	json_t *answer = json_object();
	json_t *list = json_object();
	if (nodes->whole)
		json_object_set(list, "items", f->fit);
	json_object_set(answer, "Nodes", nodes->whole ? list : json_null());
	json_decref(list);
	json_object_set(answer, "NodeNames", nodes->whole ? json_null() : f->fit);
	json_object_set(answer, "FailedNodes", f->failed);
	json_object_set(answer, "FailedAndUnresolvableNodes", f->hopeless);
	if (json_object_set_new(answer, "Error", json_string(error)) < 0) {
		json_decref(answer);
		return NULL;
	}
	return answer;
}

json_t *extender_filter(struct model *m, const json_t *args)
{
	const struct asked_nodes nodes = asked_nodes(args);
	struct error err = { 0 };
	struct ask ask = { 0 };
	struct filtering f = { .model = m,
			       .ask = &ask,
			       .fit = json_array(),
			       .failed = json_object(),
			       .hopeless = json_object() };
	/* A call about names is no dry run: that pod will be bound. What can't be taken in is told below. */
	if (nodes.names && model_is_ready(m))
		model_pod_ahead(m, json_object_get(args, "Pod"), NULL);
	if (ask_begin(m, args, &ask, &err) >= 0) {
		if (nodes.names && ask.lifted && ask.lifted->member) {
			extender_gang_filter(m, &ask, json_object_get(args, "NodeNames"), &f.gang);
			f.gang_text = json_string(f.gang.text);
		}
		judge_all(&f, &nodes);
		if (nodes.names && !ask.broken.code)
			model_note_turned_away(m, ask.pod->uid, !json_array_size(f.fit));
		if (nodes.names && !json_array_size(f.fit))
			look_for_fillers(&f);
		ask_end(&ask);
	}
	json_t *answer = make_answer(&f, &nodes, err.code ? err.text : "");
	for (unsigned i = 0; i < TEXTS_KEPT; i++)
		json_decref(f.kept[i].text);
	json_decref(f.gang_text);
	json_decref(f.fit);
	json_decref(f.failed);
	json_decref(f.hopeless);
	return answer;
}
