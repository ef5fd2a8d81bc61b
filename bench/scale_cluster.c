#include "scale_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "kube/hami/annotations.h"

#define CARDS 8

/* ---- objects, as the API server sends them ---- */

void scale_node_name(unsigned i, char name[SCALE_NAME_MAX])
{
	snprintf(name, SCALE_NAME_MAX, "gpu-node-%05u.cluster.example.com", i);
}

static char *node_text(unsigned i)
{
	char cards[4096], name[SCALE_NAME_MAX];
	size_t at = 0;
	scale_node_name(i, name);
	for (unsigned c = 0; c < CARDS; c++)
		at += (size_t)snprintf(cards + at, sizeof(cards) - at,
				       "%s{\"id\":\"GPU-%08x-0000-4000-8000-%012x\",\"index\":%u,"
				       "\"count\":10,\"devmem\":81920,\"devcore\":100,"
				       "\"type\":\"NVIDIA-H100\",\"numa\":%u,\"mode\":\"hami-core\","
				       "\"health\":true}",
				       c ? "," : "[", i, c, c, c / 4);
	snprintf(cards + at, sizeof(cards) - at, "]");
	json_t *node = json_pack(
		"{s:{s:s,s:s,s:s,s:{s:s,s:s},s:{s:s}},s:{s:s},s:{s:{s:s,s:s,s:s},s:[{s:s,s:s}]}}",
		"metadata", "name", name, "uid", name, "resourceVersion", "1000", "annotations",
		KUBE_NODE_REGISTER, cards, "node.alpha.kubernetes.io/ttl", "0", "labels",
		"kubernetes.io/hostname", name, "spec", "podCIDR", "10.0.0.0/24", "status",
		"allocatable", "cpu", "128", "memory", "1056Gi", "nvidia.com/gpu", "80",
		"conditions", "type", "Ready", "status", "True");
	char *text = json_dumps(node, JSON_COMPACT);
	json_decref(node);
	return text;
}

/* Pod `p` has a part of one card; so the eighth of each node has a card alone. */
char *scale_pod_text(unsigned p)
{
	char name[SCALE_NAME_MAX], node[SCALE_NAME_MAX], shares[128];
	unsigned card = p % SCALE_PODS_PER_NODE;
	snprintf(name, sizeof(name), "job-%08u", p);
	scale_node_name(p / SCALE_PODS_PER_NODE, node);
	unsigned mib = card == 7 ? 81920 : 20480 + 4096 * (p % 11),
		 pct = card == 7 ? 100 : 30 + p % 50;
	snprintf(shares, sizeof(shares), "GPU-%08x-0000-4000-8000-%012x,NVIDIA,%u,%u:;",
		 p / SCALE_PODS_PER_NODE, card, mib, pct);
	json_t *pod = json_pack("{s:{s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s,s:s}},s:{s:s,s:i,s:[{s:s,s:s,s:"
				"{s:{s:s,s:s,s:i,s:i}}}]},"
				"s:{s:s}}",
				"metadata", "name", name, "namespace", "team-a", "uid", name,
				"resourceVersion", "2000", "annotations", KUBE_POD_NODE, node,
				KUBE_POD_ALLOCATED, shares, KUBE_POD_TO_ALLOCATE, ";",
				KUBE_POD_BIND_PHASE, "success", "spec", "nodeName", node,
				"priority", 0, "containers", "name", "main", "image",
				"registry/train:1", "resources", "limits", "nvidia.com/gpu", "1",
				"cpu", "8", "nvidia.com/gpumem", (int)mib, "nvidia.com/gpucores",
				(int)pct, "status", "phase", "Running");
	char *text = json_dumps(pod, JSON_COMPACT);
	json_decref(pod);
	return text;
}

/* ---- measuring ---- */

uint64_t scale_computed_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

double scale_part_ms(uint64_t *ns, size_t count, double part)
{
	qsort(ns, count, sizeof(*ns), by_value);
	return (double)ns[(size_t)((double)(count - 1) * part)] / 1e6;
}

/* ---- knowing it ---- */

void scale_die(const char *what, const struct error *err)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, err->text);
	exit(1);
}

static void take(struct model *m, char *text,
		 int (*give)(struct model *, const json_t *, struct error *))
{
	struct error err = { 0 };
	json_t *object = json_loads(text, 0, NULL);
	if (give(m, object, &err) < 0)
		scale_die("object", &err);
	json_decref(object);
	free(text);
}

/* Objects are made one by one, which is not counted, read and forgotten, as from a watch in pages. */
struct model *scale_know(const struct model_terms *terms, unsigned nodes, double *ret_s)
{
	struct model *m;
	uint64_t spent_ns = 0;
	if (model_new(terms, &m) < 0)
		exit(1);
	model_list_begin(m, MODEL_NODES);
	model_list_begin(m, MODEL_PODS);
	for (unsigned i = 0; i < nodes * (1 + SCALE_PODS_PER_NODE); i++) {
		char *text = i < nodes ? node_text(i) : scale_pod_text(i - nodes);
		uint64_t begun_ns = clock_now_ns();
		take(m, text, i < nodes ? model_update_node : model_update_pod);
		spent_ns += clock_now_ns() - begun_ns;
	}
	model_list_end(m, MODEL_NODES);
	model_list_end(m, MODEL_PODS);
	*ret_s = (double)spent_ns / 1e9;
	return m;
}
