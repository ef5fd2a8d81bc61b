/*
 * What the scheduler's decisions cost in clusters of several sizes: prints, for each, the time and memory that it takes to
 * know the cluster, and the time of each verb from JSON to JSON.
 *
 *     scheduler-scale [NODES...]      100 1000 5000
 *
 * Each node has 8 cards, and 8 pods on them; what is asked for fits some nodes and others not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "kube/annotations.h"
#include "kube/object.h"
#include "sched/extender.h"

#define CARDS 8
#define PODS_PER_NODE 8
#define ROUNDS 200
#define NAME_MAX_BYTES 48

/* ---- objects, as the API server sends them ---- */

static void node_name(unsigned i, char name[NAME_MAX_BYTES])
{
	snprintf(name, NAME_MAX_BYTES, "gpu-node-%05u.cluster.example.com", i);
}

static char *node_text(unsigned i)
{
	char cards[4096], name[NAME_MAX_BYTES];
	size_t at = 0;
	node_name(i, name);
	for (unsigned c = 0; c < CARDS; c++)
		at += (size_t)snprintf(
			cards + at, sizeof(cards) - at,
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
static char *pod_text(unsigned p)
{
	char name[NAME_MAX_BYTES], node[NAME_MAX_BYTES], shares[128];
	unsigned card = p % PODS_PER_NODE;
	snprintf(name, sizeof(name), "job-%08u", p);
	node_name(p / PODS_PER_NODE, node);
	unsigned mib = card == 7 ? 81920 : 20480 + 4096 * (p % 11),
		 pct = card == 7 ? 100 : 30 + p % 50;
	snprintf(shares, sizeof(shares), "GPU-%08x-0000-4000-8000-%012x,NVIDIA,%u,%u:;",
		 p / PODS_PER_NODE, card, mib, pct);
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

/* ---- what is asked ---- */

static const struct {
	const char *what, *containers;
} kinds[] = {
	{ "a part of a card",
	  "{\"name\":\"a\",\"resources\":{\"limits\":{\"nvidia.com/gpumem\":\"30000\","
	  "\"nvidia.com/gpucores\":\"40\"}}}" },
	{ "four whole cards",
	  "{\"name\":\"a\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"4\"}}}" },
	{ "a type that none has",
	  "{\"name\":\"a\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}" },
	{ "two containers, two cards each",
	  "{\"name\":\"a\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\","
	  "\"nvidia.com/gpumem\":\"30000\",\"nvidia.com/gpucores\":\"20\"}}},"
	  "{\"name\":\"b\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\","
	  "\"nvidia.com/gpumem\":\"40000\",\"nvidia.com/gpucores\":\"20\"}}}" },
	{ "two containers that hardly fit",
	  "{\"name\":\"a\",\"resources\":{\"limits\":{\"nvidia.com/gpumem\":\"55000\","
	  "\"nvidia.com/gpucores\":\"50\"}}},"
	  "{\"name\":\"b\",\"resources\":{\"limits\":{\"nvidia.com/gpumem\":\"57000\","
	  "\"nvidia.com/gpucores\":\"50\"}}}" },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define KIND_OF_NO_TYPE 2

static json_t *pod_asking(unsigned kind, unsigned number, const char *policy)
{
	char text[2048];
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"new-%u\",\"namespace\":\"team-b\",\"uid\":\"new-%u\","
		 "\"resourceVersion\":\"1\",\"annotations\":{\"nvidia.com/use-gputype\":\"%s\","
		 "\"hami.io/node-scheduler-policy\":\"%s\"}},"
		 "\"spec\":{\"containers\":[%s]},\"status\":{\"phase\":\"Pending\"}}",
		 number, number, kind == KIND_OF_NO_TYPE ? "A100" : "H100", policy,
		 kinds[kind].containers);
	return json_loads(text, 0, NULL);
}

static char *args_text(unsigned kind, unsigned number, unsigned from, unsigned names,
		       unsigned nodes, const char *policy)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < names; i++) {
		char name[NAME_MAX_BYTES];
		node_name((from + i) % nodes, name);
		json_array_append_new(list, json_string(name));
	}
	json_t *args = json_pack("{s:o,s:n,s:o}", "Pod", pod_asking(kind, number, policy), "Nodes",
				 "NodeNames", list);
	char *text = json_dumps(args, JSON_COMPACT);
	json_decref(args);
	return text;
}

/* ---- measuring ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* What this thread has computed: a machine that does other things as well counts that to nobody. */
static uint64_t computed_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static double part_ms(uint64_t *ns, size_t count, double part)
{
	qsort(ns, count, sizeof(*ns), by_value);
	return (double)ns[(size_t)((double)(count - 1) * part)] / 1e6;
}

static double resident_mib(void)
{
	unsigned long pages = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%lu %lu", &pages, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void die(const char *what, const struct error *err)
{
	fprintf(stderr, "scheduler-scale: %s: %s\n", what, err->text);
	exit(1);
}

static void take(struct model *m, char *text,
		 int (*give)(struct model *, const json_t *, struct error *))
{
	struct error err = { 0 };
	json_t *object = json_loads(text, 0, NULL);
	if (give(m, object, &err) < 0)
		die("object", &err);
	json_decref(object);
	free(text);
}

/* Objects are made one by one, which is not counted, read and forgotten, as from a watch in pages. */
static struct model *know(unsigned nodes, double *ret_s)
{
	struct model *m;
	struct model_terms terms = { .request = request_terms_default };
	uint64_t spent_ns = 0;
	if (model_new(&terms, &m) < 0)
		exit(1);
	model_begin(m, MODEL_NODES);
	model_begin(m, MODEL_PODS);
	for (unsigned i = 0; i < nodes * (1 + PODS_PER_NODE); i++) {
		char *text = i < nodes ? node_text(i) : pod_text(i - nodes);
		uint64_t begun_ns = clock_now_ns();
		take(m, text, i < nodes ? model_node : model_pod);
		spent_ns += clock_now_ns() - begun_ns;
	}
	model_synced(m, MODEL_NODES);
	model_synced(m, MODEL_PODS);
	*ret_s = (double)spent_ns / 1e9;
	return m;
}

static void time_filter(struct model *m, unsigned kind, unsigned nodes)
{
	uint64_t all_ns[ROUNDS], own_ns[ROUNDS], cpu_ns[ROUNDS];
	size_t fit = 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		char *text = args_text(kind, 0, i, nodes, nodes, "binpack");
		uint64_t begun_ns = clock_now_ns();
		json_t *args = json_loads(text, 0, NULL);
		uint64_t read_ns = clock_now_ns(), read_cpu_ns = computed_ns();
		json_t *answer = extender_filter(m, args);
		cpu_ns[i] = computed_ns() - read_cpu_ns;
		own_ns[i] = clock_now_ns() - read_ns;
		char *said = json_dumps(answer, JSON_COMPACT);
		all_ns[i] = clock_now_ns() - begun_ns;
		fit = json_array_size(json_object_get(answer, "NodeNames"));
		json_decref(answer);
		json_decref(args);
		free(said);
		free(text);
	}
	printf("  filter, %-31s %5zu fit: p50 %6.2f ms, p99 %6.2f ms (computed %6.2f, %6.2f); "
	       "with JSON %6.2f, %6.2f\n",
	       kinds[kind].what, fit, part_ms(own_ns, ROUNDS, 0.5), part_ms(own_ns, ROUNDS, 0.99),
	       part_ms(cpu_ns, ROUNDS, 0.5), part_ms(cpu_ns, ROUNDS, 0.99),
	       part_ms(all_ns, ROUNDS, 0.5), part_ms(all_ns, ROUNDS, 0.99));
}

/* Another pod each time, whose cards are given back to another node in between: nothing can be remembered from before. */
static void time_prioritize(struct model *m, unsigned kind, unsigned nodes, const char *policy)
{
	uint64_t own_ns[ROUNDS], cpu_ns[ROUNDS];
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct error err;
		char *text = args_text(kind, 0, i, nodes, nodes, policy);
		json_t *args = json_loads(text, 0, NULL);
		char *changed = pod_text(i * 97 % (nodes * PODS_PER_NODE));
		json_t *pod = json_loads(changed, 0, NULL);
		model_pod_gone(m, pod);
		if (model_pod(m, pod, &err) < 0)
			die("pod", &err);
		uint64_t begun_ns = clock_now_ns(), begun_cpu_ns = computed_ns();
		json_t *ranks = extender_prioritize(m, args);
		cpu_ns[i] = computed_ns() - begun_cpu_ns;
		own_ns[i] = clock_now_ns() - begun_ns;
		json_decref(ranks);
		json_decref(pod);
		json_decref(args);
		free(changed);
		free(text);
	}
	printf("  prioritize by %s, %-31s: p50 %6.2f ms, p99 %6.2f ms (computed %6.2f, %6.2f)\n",
	       policy, kinds[kind].what, part_ms(own_ns, ROUNDS, 0.5), part_ms(own_ns, ROUNDS, 0.99),
	       part_ms(cpu_ns, ROUNDS, 0.5), part_ms(cpu_ns, ROUNDS, 0.99));
}

/* kube-scheduler's default: it asks about so many of the nodes (its documentation, percentageOfNodesToScore). */
static unsigned names_asked(unsigned nodes)
{
	unsigned pct = nodes / 125 < 45 ? 50 - nodes / 125 : 5, names = nodes * pct / 100;
	return nodes <= 100 ? nodes : names < 100 ? 100 : names;
}

static void free_answer(char *text, json_t *a, json_t *b)
{
	json_decref(a);
	json_decref(b);
	free(text);
}

/* One decision from its first call to the pod that is bound; whether it found a place. */
static bool place(struct model *m, unsigned number, unsigned nodes)
{
	struct decision d;
	struct error err = { 0 };
	unsigned names = names_asked(nodes);
	char *text = args_text(0, number, number * 97 % nodes, names, nodes, "binpack");
	json_t *args = json_loads(text, 0, NULL), *answer = extender_filter(m, args);
	const char *best = NULL;
	json_int_t most = -1;
	size_t i;
	json_t *one;
	json_object_set(args, "NodeNames", json_object_get(answer, "NodeNames"));
	json_t *ranks = extender_prioritize(m, args);
	json_array_foreach(ranks, i,
			   one) if (json_integer_value(json_object_get(one, "Score")) > most)
	{
		most = json_integer_value(json_object_get(one, "Score"));
		best = json_string_value(json_object_get(one, "Host"));
	}
	json_t *pod = json_deep_copy(json_object_get(args, "Pod"));
	const char *uid = json_string_value(
		json_object_get(json_object_get(pod, "metadata"), "uid"));
	json_t *bind = best ? json_pack("{s:s,s:s,s:s,s:s}", "PodName", uid, "PodNamespace",
					"team-b", "PodUID", uid, "Node", best)
			    : NULL;
	bool is_placed = bind && extender_decide(m, bind, clock_now_ns(), &d, &err) == 0;
	if (is_placed) {
		char *shares = shares_format(&d.shares);
		json_t *annotations = json_object_get(json_object_get(pod, "metadata"),
						      "annotations");
		json_object_set_new(annotations, KUBE_POD_NODE, json_string(d.node));
		json_object_set_new(annotations, KUBE_POD_ALLOCATED, json_string(shares));
		json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(d.node));
		if (model_pod(m, pod, &err) < 0)
			die("pod", &err);
		free(shares);
		decision_free(&d);
	}
	json_decref(pod);
	json_decref(bind);
	json_decref(ranks);
	free_answer(text, args, answer);
	return is_placed;
}

static void time_places(struct model *m, unsigned nodes)
{
	unsigned tries = 0, placed = 0;
	uint64_t begun_ns = clock_now_ns(), ns;
	do {
		placed += place(m, tries++, nodes);
		ns = clock_now_ns() - begun_ns;
	} while (ns < 3 * NSEC_PER_SEC && placed < nodes);
	printf("  %u of %u pods placed, asked about %u nodes each: %.2f ms a decision, %.0f a "
	       "second\n",
	       placed, tries, names_asked(nodes), (double)ns / 1e6 / tries,
	       (double)placed * 1e9 / (double)ns);
}

static void measure(unsigned nodes)
{
	double empty_mib = resident_mib(), s;
	struct model *m = know(nodes, &s);
	struct model_counts counts = model_counts(m);
	printf("%u nodes, %zu cards, %zu pods: known in %.2f s, %.1f MiB (%.1f MiB the whole "
	       "process)\n",
	       nodes, counts.cards, counts.pods, s, resident_mib() - empty_mib, resident_mib());
	for (unsigned kind = 0; kind < KINDS; kind++)
		time_filter(m, kind, nodes);
	for (unsigned kind = 0; kind < 2; kind++) {
		time_prioritize(m, kind, nodes, "binpack");
		time_prioritize(m, kind, nodes, "fragmentation");
	}
	time_places(m, nodes);
	printf("  %.1f MiB the whole process\n", resident_mib());
	model_free(m);
}

/* Each in a process of its own, whose memory is its own. */
int main(int argc, char **argv)
{
	static const char *const usual[] = { "100", "1000", "5000" };
	for (int i = 1; i < (argc > 1 ? argc : 4); i++) {
		unsigned nodes = (unsigned)strtoul(argc > 1 ? argv[i] : usual[i - 1], NULL, 10);
		int status = 1;
		if (nodes < 1 || nodes > 100000) {
			fprintf(stderr, "scheduler-scale: '%s': must be 1 to 100000 nodes\n",
				argv[i]);
			return 2;
		}
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			measure(nodes);
			return 0;
		}
		if (child < 0 || waitpid(child, &status, 0) < 0 || status)
			return 1;
	}
	return 0;
}
