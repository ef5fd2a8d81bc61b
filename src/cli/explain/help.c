/* Suggests fixes. Each suggest_...() looks for one cause in the explanation, and writes a fix if it finds that cause. */
#include <stdbool.h>
#include <string.h>

#include "cli/explain/explain_text.h"

struct help {
	const json_t *e, *cluster, *nodes;
	FILE *out;
	bool has_begun;
};

static void begin_item(struct help *h)
{
	if (!h->has_begun)
		fputs("\nPossible fixes\n", h->out);
	h->has_begun = true;
	fputs("  ", h->out);
}

static json_int_t largest_mib(const json_t *cluster)
{
	const json_t *types = json_object_get(cluster, "types");
	json_int_t most = 0;
	for (size_t i = 0; i < json_array_size(types); i++) {
		json_int_t mib = explain_number(json_array_get(types, i), "memory_mib");
		most = mib > most ? mib : most;
	}
	return most;
}

static void suggest_smaller_request(struct help *h)
{
	const json_t *asks = json_object_get(h->e, "asks");
	json_int_t most_mib = largest_mib(h->cluster);
	json_int_t most_cards = explain_number(h->cluster, "most_cards_of_a_node");
	char name[EXPLAIN_AMOUNT_MAX], wanted[EXPLAIN_AMOUNT_MAX], most[EXPLAIN_AMOUNT_MAX];
	for (size_t i = 0; most_cards && i < json_array_size(asks); i++) {
		const json_t *ask = json_array_get(asks, i);
		explain_container(h->e, explain_number(ask, "container"), name);
		explain_memory(ask, wanted);
		explain_mib(most_mib, most);
		if (explain_number(ask, "memory_mib") > most_mib) {
			begin_item(h);
			fprintf(h->out,
				"%s requests %s (%lld MiB) of a GPU: the largest here has %s (%lld MiB)\n",
				name, wanted, (long long)explain_number(ask, "memory_mib"), most,
				(long long)most_mib);
		}
		if (explain_number(ask, "cards") > most_cards) {
			begin_item(h);
			fprintf(h->out,
				"%s requests %lld GPUs together: no node has more than %lld\n", name,
				(long long)explain_number(ask, "cards"), (long long)most_cards);
		}
	}
}

/* Returns how many GPUs of all nodes cannot serve the pod for this reason. */
static json_int_t cards_with(const struct help *h, const char *reason)
{
	json_int_t cards = 0;
	for (size_t i = 0; i < json_array_size(h->nodes); i++) {
		const json_t *node = json_array_get(h->nodes, i);
		cards += explain_number(json_object_get(node, "reasons"), reason);
	}
	return cards;
}

static void suggest_other_type(struct help *h)
{
	const json_t *types = json_object_get(h->cluster, "types");
	json_int_t cards = explain_number(h->cluster, "cards");
	char count[EXPLAIN_AMOUNT_MAX];
	if (!cards || cards_with(h, "CardTypeMismatch") != cards)
		return;
	begin_item(h);
	fputs("no GPU is of a type, or mode, that the pod asks for; there are", h->out);
	for (size_t i = 0; i < json_array_size(types); i++) {
		const json_t *type = json_array_get(types, i);
		explain_count(explain_number(type, "cards"), count);
		fprintf(h->out, "%s %s (%s)", i ? "," : "", explain_word(type, "type"), count);
	}
	fputc('\n', h->out);
}

static void suggest_other_gpus(struct help *h)
{
	json_int_t cards = explain_number(h->cluster, "cards");
	if (!cards ||
	    cards_with(h, "CardUuidMismatch") + cards_with(h, "CardTypeMismatch") != cards ||
	    !cards_with(h, "CardUuidMismatch"))
		return;
	begin_item(h);
	fputs("the pod's annotations nvidia.com/use-gpuuuid and nouse-gpuuuid allow no GPU of the "
	      "cluster\n",
	      h->out);
}

static void suggest_quota(struct help *h)
{
	if (!cards_with(h, "ResourceQuotaNotFit"))
		return;
	const json_t *quotas = json_object_get(h->e, "quotas");
	begin_item(h);
	fprintf(h->out, "other pods of namespace %s must end, or its ResourceQuota be raised:",
		explain_word(h->e, "namespace"));
	for (size_t i = 0; i < json_array_size(quotas); i++) {
		const json_t *quota = json_array_get(quotas, i);
		fprintf(h->out, "%s they use %lld of %lld %s", i ? "," : "",
			(long long)explain_number(quota, "used"),
			(long long)explain_number(quota, "limit"), explain_word(quota, "resource"));
	}
	fputc('\n', h->out);
}

static void suggest_gpu_repair(struct help *h)
{
	json_int_t cordoned = cards_with(h, "CardCordoned"), sick = cards_with(h, "CardNotHealth");
	char count[EXPLAIN_AMOUNT_MAX];
	explain_count(cordoned, count);
	if (cordoned) {
		begin_item(h);
		fprintf(h->out, "%s GPU%s cordoned: run allot uncordon GPU on the node\n", count,
			cordoned == 1 ? " is" : "s are");
	}
	explain_count(sick, count);
	if (sick) {
		begin_item(h);
		fprintf(h->out, "%s GPU%s not healthy: allot ps on the node says why\n", count,
			sick == 1 ? " is" : "s are");
	}
}

static void suggest_node_repair(struct help *h)
{
	json_int_t aside = explain_number(h->cluster, "nodes_aside");
	char count[EXPLAIN_AMOUNT_MAX];
	explain_count(aside, count);
	if (!aside)
		return;
	begin_item(h);
	fprintf(h->out,
		"%s node%s set aside, since the list of GPUs on the Node object is not valid\n",
		count, aside == 1 ? " is" : "s are");
}

static void suggest_daemon_start(struct help *h)
{
	if (!h->cluster || explain_number(h->cluster, "nodes") ||
	    explain_number(h->cluster, "nodes_aside"))
		return;
	begin_item(h);
	fputs("no node has the annotation hami.io/node-nvidia-register: is allotd, or another "
	      "device plugin "
	      "of that protocol, at work on the nodes with GPUs?\n",
	      h->out);
}

static void suggest_waiting(struct help *h)
{
	for (size_t i = 0; i < json_array_size(h->nodes) && !explain_has_room(h->e); i++) {
		const json_t *node = json_array_get(h->nodes, i);
		if (!json_object_get(node, "lacks") || json_object_get(node, "card"))
			continue;
		begin_item(h);
		fprintf(h->out,
			"pods that run now must end: allot explain -n %s %s --node NODE lists them\n",
			explain_word(h->e, "namespace"), explain_word(h->e, "pod"));
		return;
	}
}

/* If some node has room, the pod waits for something outside of allot. */
static void suggest_kube_scheduler(struct help *h)
{
	if (!explain_has_room(h->e))
		return;
	begin_item(h);
	fprintf(h->out, "kube-scheduler may have other reasons: kubectl -n %s describe pod %s\n",
		explain_word(h->e, "namespace"), explain_word(h->e, "pod"));
}

void explain_help_write(const json_t *e, FILE *out)
{
	static void (*const each[])(struct help * help) = {
		suggest_smaller_request, suggest_other_type, suggest_other_gpus,
		suggest_quota,           suggest_gpu_repair, suggest_node_repair,
		suggest_daemon_start,    suggest_waiting,    suggest_kube_scheduler,
	};
	struct help h = { .e = e,
			  .cluster = json_object_get(e, "cluster"),
			  .nodes = json_object_get(e, "nodes"),
			  .out = out };
	if (strcmp(explain_word(e, "state"), "waiting") != 0 ||
	    !json_array_size(json_object_get(e, "asks")))
		return;
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		each[i](&h);
}
