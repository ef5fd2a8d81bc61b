#include "scheduler/page/state.h"

#include <stdio.h>
#include <string.h>

#include "scheduler/extender/extender_gang.h"

#define URL_MAX 1024
/* A link's score: NVLINK_SCORE for each NVLink, plus LEVEL_SCORE times enum place_level (policy/placement/place_node.h). */
#define NVLINK_SCORE 100
#define LEVEL_SCORE 10

static void write_sum(const struct aggregate_sum *s, struct json_text *t)
{
	json_text_whole(t, "cards", s->cards);
	json_text_whole(t, "cards_unhealthy", s->unhealthy);
	json_text_whole(t, "cards_cordoned", s->cordoned);
	json_text_whole(t, "memory_bytes", (int64_t)s->memory_bytes);
	json_text_whole(t, "promised_bytes", (int64_t)s->promised_bytes);
	json_text_real(t, "cores_pct", (double)s->cores_mpct / MPCT);
	json_text_real(t, "promised_cores_pct", (double)s->promised_mpct / MPCT);
	json_text_whole(t, "shares", (int64_t)s->shares);
}

static void write_cluster(const struct page_cluster *c, struct json_text *t)
{
	const struct aggregate *l = c->aggregate;
	json_text_open(t, NULL, '{');
	json_text_bool(t, "ready", c->is_ready);
	json_text_bool(t, "leads", c->leads);
	json_text_whole(t, "nodes", (int64_t)(l->count - l->nodes_rejected));
	json_text_whole(t, "nodes_without_cards", (int64_t)l->nodes_without);
	json_text_whole(t, "nodes_aside", (int64_t)l->nodes_rejected);
	json_text_whole(t, "pods", (int64_t)l->pods);
	json_text_whole(t, "pods_waiting", (int64_t)l->waiting);
	json_text_whole(t, "pods_reserved", (int64_t)l->reserved);
	write_sum(&l->sum, t);
	json_text_close(t, '}');
}

static void write_node(const struct aggregate_node *n, struct json_text *t)
{
	json_text_open(t, NULL, '{');
	json_text_string(t, "node", n->node->name);
	json_text_string(t, "state", view_node_states[n->state]);
	json_text_string(t, "type",
			 n->node->inventory.count ? n->node->inventory.card[0].type : NULL);
	json_text_string(t, "why", n->node->cards_error);
	write_sum(&n->sum, t);
	json_text_close(t, '}');
}

static void write_nodes(const struct page_cluster *c, const struct view *view,
			struct sent_rows *sent, struct json_text *t)
{
	struct view_best best;
	struct delta_writer w;
	if (aggregate_nodes(c->aggregate, view, &best) < 0) {
		t->failed = true;
		return;
	}
	delta_rows_begin(&w, sent);
	for (size_t i = view->nodes_from; i < best.count; i++) {
		const struct aggregate_node *n = best.thing[i];
		write_node(n, &w.row);
		delta_row(&w, n->node->name);
	}
	delta_rows_end(&w, "nodes", best.seen, view->nodes_from, t);
	view_best_free(&best);
}

static void write_asks(const struct request *request, struct json_text *t)
{
	json_text_open(t, "asks", '[');
	for (size_t i = 0; request && i < request->count; i++) {
		const struct place_request *r = &request->part[i].place;
		json_text_open(t, NULL, '{');
		json_text_whole(t, "cards", r->count);
		json_text_real(t, "cores_pct", (double)r->cores_mpct / MPCT);
		if (r->memory == PLACE_MEMORY_BYTES)
			json_text_whole(t, "memory_mib", (int64_t)(r->memory_bytes >> MIB_BITS));
		else
			json_text_whole(t, "memory_pct",
					r->memory == PLACE_MEMORY_PCT ? (int64_t)r->memory_pct
								      : 100);
		json_text_close(t, '}');
	}
	json_text_close(t, ']');
}

static void write_has(const struct model_pod *pod, struct json_text *t)
{
	const struct quota_amounts has = inventory_shares_sum(&pod->charged->shares);
	json_text_string(t, "node", pod->charged->node->name);
	json_text_whole(t, "cards", (int64_t)has.of[QUOTA_GPUS]);
	json_text_whole(t, "memory_mib", (int64_t)has.of[QUOTA_MEMORY]);
	json_text_whole(t, "cores_pct", (int64_t)has.of[QUOTA_CORES]);
}

static void write_why(const struct page_cluster *c, const struct model_pod *pod,
		      enum view_pod_state state, struct json_text *t)
{
	struct gang_answer gang;
	const char *why = NULL;
	bool has_gang = !pod->is_bound && extender_gang_why(pod, &gang);
	json_text_string(t, "broken", pod->request_error);
	json_text_string(t, "gang", has_gang ? gang.text : NULL);
	if (state == VIEW_WAITING && !pod->request_error)
		why = reasons_get(c->reasons, pod, c->now_ns);
	if (why)
		json_text_raw(t, "why", why);
	else
		json_text_null(t, "why");
}

static void begin_pod(const struct model_pod *pod, struct json_text *t)
{
	json_text_open(t, NULL, '{');
	json_text_string(t, "uid", pod->text);
	json_text_string(t, "namespace", pod->pod_namespace);
	json_text_string(t, "pod", model_pod_name(pod));
	json_text_string(t, "state", view_pod_states[aggregate_pod_state(pod)]);
	json_text_whole(t, "priority", pod->priority);
}

static void write_pod(const struct page_cluster *c, const struct model_pod *pod, struct json_text *t)
{
	begin_pod(pod, t);
	if (pod->charged)
		write_has(pod, t);
	else
		json_text_null(t, "node");
	if (!pod->is_bound)
		write_asks(pod->request, t);
	write_why(c, pod, aggregate_pod_state(pod), t);
	json_text_close(t, '}');
}

static void write_pods(const struct page_cluster *c, const struct view *view,
		       struct sent_rows *sent, struct json_text *t)
{
	struct view_best best;
	struct delta_writer w;
	if (aggregate_pods(c->model, view, &best) < 0) {
		t->failed = true;
		return;
	}
	delta_rows_begin(&w, sent);
	for (size_t i = view->pods_from; i < best.count; i++) {
		const struct model_pod *pod = best.thing[i];
		write_pod(c, pod, &w.row);
		delta_row(&w, pod->text);
	}
	delta_rows_end(&w, "pods", best.seen, view->pods_from, t);
	view_best_free(&best);
}

static void write_card(const struct page_cluster *c, const struct model_node *node, unsigned i,
		       struct json_text *t)
{
	const struct place_card *card = &node->inventory.card[i];
	const struct use_card *use = use_of(&node->use, i, c->model->now_ns);
	json_text_open(t, NULL, '{');
	json_text_whole(t, "index", i);
	json_text_string(t, "uuid", card->uuid);
	json_text_string(t, "name", card->type);
	json_text_whole(t, "memory_bytes", (int64_t)card->memory_total_bytes);
	json_text_whole(t, "promised_bytes", (int64_t)card->memory_used_bytes);
	json_text_real(t, "cores_pct", (double)card->cores_total_mpct / MPCT);
	json_text_real(t, "promised_cores_pct", (double)card->cores_used_mpct / MPCT);
	json_text_whole(t, "slots", card->slots_total);
	json_text_whole(t, "slots_used", card->slots_used);
	if (card->numa_known)
		json_text_whole(t, "numa", card->numa);
	else
		json_text_null(t, "numa");
	json_text_string(t, "health", card->is_sick ? "unhealthy" : "healthy");
	json_text_bool(t, "cordoned", card->is_cordoned);
	if (use) {
		json_text_whole(t, "used_pct", use->now_pct);
		json_text_whole(t, "used_mib", use->memory_mib);
	}
	json_text_close(t, '}');
}

/* Decodes HAMi's score of the link between cards a and b, and writes it in the format of a node page's /api/topology. */
static void write_link(const struct inventory *inventory, unsigned a, unsigned b,
		       struct json_text *t)
{
	unsigned score = inventory->score[a * inventory->count + b];
	unsigned level = score % NVLINK_SCORE / LEVEL_SCORE;
	json_text_open(t, NULL, '{');
	json_text_open(t, "devices", '[');
	json_text_whole(t, NULL, a);
	json_text_whole(t, NULL, b);
	json_text_close(t, ']');
	json_text_whole(t, "nvlinks", score / NVLINK_SCORE);
	json_text_string(t, "pcie",
			 level && level < PLACE_LEVEL_COUNT
				 ? place_level_name((enum place_level)level)
				 : NULL);
	json_text_close(t, '}');
}

static void write_links(const struct inventory *inventory, struct json_text *t)
{
	json_text_open(t, "links", '[');
	for (unsigned a = 0; inventory->score && a < inventory->count; a++)
		for (unsigned b = a + 1; b < inventory->count; b++)
			write_link(inventory, a, b, t);
	json_text_close(t, ']');
}

static unsigned card_index(const struct inventory *inventory, const char *uuid)
{
	unsigned i = 0;
	while (i < inventory->count && inventory->card[i].uuid != uuid)
		i++;
	return i;
}

static void write_pod_here(const struct model_node *node, const struct model_pod *pod,
			   struct json_text *t)
{
	begin_pod(pod, t);
	json_text_open(t, "shares", '[');
	for (unsigned i = 0; i < pod->charged->shares.count; i++) {
		const struct inventory_share *s = &pod->charged->shares.share[i];
		unsigned index = card_index(&node->inventory, s->card);
		json_text_open(t, NULL, '{');
		json_text_whole(t, "container", s->container);
		/* The index is null if the node no longer has the card; the share still names the card's UUID. */
		if (index < node->inventory.count)
			json_text_whole(t, "index", index);
		else
			json_text_null(t, "index");
		json_text_string(t, "card", s->card);
		json_text_whole(t, "memory_mib", s->memory_mib);
		json_text_whole(t, "cores_pct", s->cores_pct);
		json_text_close(t, '}');
	}
	json_text_close(t, ']');
	json_text_close(t, '}');
}

static void write_pods_here(const struct model_node *node, struct json_text *t)
{
	struct view_best best;
	if (aggregate_pods_of(node, STATE_PODS_OF_NODE, &best) < 0) {
		t->failed = true;
		return;
	}
	json_text_whole(t, "pods_seen", (int64_t)best.seen);
	json_text_open(t, "pods", '[');
	for (size_t i = 0; i < best.count; i++)
		write_pod_here(node, best.thing[i], t);
	json_text_close(t, ']');
	view_best_free(&best);
}

void page_node_url(const char *pattern, const char *node, char *text, size_t size)
{
	size_t at = 0;
	const char *next;
	*text = '\0';
	for (const char *from = pattern; at < size && *from; from = next) {
		const char *name = strstr(from, PAGE_URL_NODE);
		next = name ? name + strlen(PAGE_URL_NODE) : from + strlen(from);
		at += (size_t)snprintf(text + at, size - at, "%.*s%s",
				       (int)((name ? name : next) - from), from, name ? node : "");
	}
}

static void write_open(const struct page_cluster *c, const char *name, struct json_text *t)
{
	const struct model_node *node = *name ? model_find_node(c->model, name) : NULL;
	char url[URL_MAX];
	if (!node) {
		json_text_null(t, NULL);
		return;
	}
	json_text_open(t, NULL, '{');
	json_text_string(t, "node", node->name);
	json_text_string(t, "why", node->cards_error);
	page_node_url(c->node_url, node->name, url, sizeof(url));
	json_text_string(t, "url", strcmp(c->node_url, "none") ? url : NULL);
	json_text_open(t, "devices", '[');
	for (unsigned i = 0; i < node->inventory.count; i++)
		write_card(c, node, i, t);
	json_text_close(t, ']');
	write_links(&node->inventory, t);
	write_pods_here(node, t);
	json_text_close(t, '}');
}

bool page_cluster_write(const struct page_cluster *c, const struct view *view,
			struct sent_state *sent, struct json_text *t)
{
	struct json_text part = { 0 };
	size_t before;
	if (!sent->has_begun) {
		json_text_whole(t, "version", 1);
		json_text_string(t, "scheduler", "allot-scheduler " ALLOT_VERSION);
	}
	before = t->used;
	write_cluster(c, &part);
	delta_part(&sent->cluster, "cluster", &part, t);
	write_nodes(c, view, &sent->nodes, t);
	write_pods(c, view, &sent->pods, t);
	write_open(c, view->open, &part);
	delta_part(&sent->open, "open", &part, t);
	sent->has_begun = true;
	return t->used != before;
}
