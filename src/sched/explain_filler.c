#include "sched/explain_filler.h"

#include "sched/filler.h"

#define SECOND_NS UINT64_C(1000000000)

static bool is_filler(const struct model *m)
{
	return m->fit.request->is_filler;
}

/* Why nothing is known of the card's use: then it is judged by promises. NULL: something is. */
static const char *why_unknown(const struct model *m, const struct model_node *node, unsigned i)
{
	const struct use *u = &node->use;
	if (use_of(u, i, m->now_ns))
		return NULL;
	if (!u->said)
		return "its node does not say it (" KUBE_NODE_USE ")";
	if (!u->is_moving)
		return "its node has said nothing new since it was first asked";
	if (m->now_ns - u->heard_ns > USE_FRESH_NS)
		return "its node has not said it for 180 s";
	return "its node does not say it of this card";
}

static uint64_t shut_for_ns(const struct model *m, const struct model_node *node, unsigned i)
{
	return filler_shut_for_ns(use_of(&node->use, i, m->now_ns), m->now_ns);
}

static json_int_t seconds_of(uint64_t ns)
{
	return (json_int_t)((ns + SECOND_NS - 1) / SECOND_NS);
}

bool explain_is_shut(const struct model *m, const struct model_node *node, unsigned i)
{
	return is_filler(m) && shut_for_ns(m, node, i);
}

/* The same figures as filler_taken_pct() has them. */
static json_t *show_use(const struct model *m, const struct model_node *node, unsigned i)
{
	const struct filler_card card = fit_filler_card(&m->fit, &node->stock, i);
	uint64_t shut_ns = shut_for_ns(m, node, i);
	json_t *use = json_pack("{s:I,s:I,s:i,s:i,s:i,s:I}", "promised_pct",
				(json_int_t)card.guaranteed_pct, "lent_pct",
				(json_int_t)card.borrowed_pct, "measured_pct",
				(int)card.use->held_pct, "peak_pct", (int)card.use->peak_pct,
				"now_pct", (int)card.use->now_pct, "taken_pct",
				(json_int_t)filler_taken_pct(&card, m->now_ns));
	if (shut_ns)
		json_object_set_new(use, "shut_for_s", json_integer(seconds_of(shut_ns)));
	return use;
}

void explain_add_card_use(json_t *to, const struct model *m, const struct model_node *node,
			  unsigned i)
{
	const char *why = why_unknown(m, node, i);
	if (!is_filler(m))
		return;
	if (why)
		json_object_set_new(to, "use_unknown", json_string(why));
	else
		json_object_set_new(to, "use", show_use(m, node, i));
}

void explain_add_use(json_t *to, const struct model *m, const struct model_node *node)
{
	unsigned unknown = 0, shut = 0;
	uint64_t first_ns = 0;
	const char *why = NULL;
	if (!is_filler(m))
		return;
	for (unsigned i = 0; i < node->stock.count; i++) {
		const char *of_this = why_unknown(m, node, i);
		uint64_t shut_ns = shut_for_ns(m, node, i);
		unknown += of_this != NULL;
		why = of_this ? of_this : why;
		shut += shut_ns > 0;
		if (shut_ns && (!first_ns || shut_ns < first_ns))
			first_ns = shut_ns;
	}
	if (unknown) {
		json_object_set_new(to, "cards_of_unknown_use", json_integer(unknown));
		json_object_set_new(to, "use_unknown", json_string(why));
	}
	if (shut) {
		json_object_set_new(to, "cards_shut", json_integer(shut));
		json_object_set_new(to, "open_in_s", json_integer(seconds_of(first_ns)));
	}
}
