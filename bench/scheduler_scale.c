/*
 * The cost of the scheduler's decisions in clusters of several sizes: prints, for each, the time and memory that it takes to
 * know the cluster, and the time of each verb from JSON to JSON.
 *
 *     scheduler-scale [--json] [NODES...]      100 1000 5000
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
#include "base/json.h"
#include "kube/hami/annotations.h"
#include "scale_cluster.h"
#include "scheduler/extender/extender.h"
#include "scheduler/page/state.h"
#include "scheduler/util/heap.h"

#define ROUNDS 200

/* ---- the requests ---- */

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
		char name[SCALE_NAME_MAX];
		scale_node_name((from + i) % nodes, name);
		json_array_append_new(list, json_string(name));
	}
	json_t *args = json_pack("{s:o,s:n,s:o}", "Pod", pod_asking(kind, number, policy), "Nodes",
				 "NodeNames", list);
	char *text = json_dumps(args, JSON_COMPACT);
	json_decref(args);
	return text;
}

/* ---- measuring ---- */

static json_t *figures; /* of the cluster that is measured, where lines of JSON are asked for instead of text */

static void note(const char *list, json_t *entry)
{
	if (!json_object_get(figures, list))
		json_object_set_new(figures, list, json_array());
	json_array_append_new(json_object_get(figures, list), entry);
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

/* As routes.c does. */
static struct call_args *read_args(const char *text, size_t size)
{
	struct call_args *args;
	struct error err;
	if (call_args_read(text, size, &args, &err) < 0)
		scale_die("arguments", &err);
	return args;
}

static void time_filter(struct model *m, unsigned kind, unsigned nodes)
{
	uint64_t all_ns[ROUNDS], own_ns[ROUNDS], cpu_ns[ROUNDS];
	size_t fit = 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		char *text = args_text(kind, 0, i, nodes, nodes, "binpack");
		size_t size = strlen(text);
		uint64_t begun_ns = clock_now_ns();
		struct call_args *args = read_args(text, size);
		uint64_t read_ns = clock_now_ns(), read_cpu_ns = scale_computed_ns();
		struct filter_answer *answer = extender_filter(m, args);
		cpu_ns[i] = scale_computed_ns() - read_cpu_ns;
		own_ns[i] = clock_now_ns() - read_ns;
		char *said = filter_answer_text(answer);
		fit = answer->fits;
		filter_answer_put(answer);
		call_args_put(args);
		all_ns[i] = clock_now_ns() - begun_ns;
		free(said);
		free(text);
	}
	if (figures) {
		note("filter", json_pack("{s:s,s:f,s:f,s:f,s:f}", "what", kinds[kind].what,
					 "p50_ms", scale_part_ms(own_ns, ROUNDS, 0.5), "p99_ms",
					 scale_part_ms(own_ns, ROUNDS, 0.99), "json_p50_ms",
					 scale_part_ms(all_ns, ROUNDS, 0.5), "json_p99_ms",
					 scale_part_ms(all_ns, ROUNDS, 0.99)));
		return;
	}
	printf("  filter, %-31s %5zu fit: p50 %6.2f ms, p99 %6.2f ms (computed %6.2f, %6.2f); "
	       "with JSON %6.2f, %6.2f\n",
	       kinds[kind].what, fit, scale_part_ms(own_ns, ROUNDS, 0.5),
	       scale_part_ms(own_ns, ROUNDS, 0.99), scale_part_ms(cpu_ns, ROUNDS, 0.5),
	       scale_part_ms(cpu_ns, ROUNDS, 0.99), scale_part_ms(all_ns, ROUNDS, 0.5),
	       scale_part_ms(all_ns, ROUNDS, 0.99));
}

/* Another pod each time, whose cards are given back to another node in between: nothing can be remembered from before. */
static void time_prioritize(struct model *m, unsigned kind, unsigned nodes, const char *policy)
{
	uint64_t own_ns[ROUNDS], cpu_ns[ROUNDS];
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct error err;
		char *text = args_text(kind, 0, i, nodes, nodes, policy);
		struct call_args *args = read_args(text, strlen(text));
		char *changed = scale_pod_text(i * 97 % (nodes * SCALE_PODS_PER_NODE));
		json_t *pod = json_loads(changed, 0, NULL);
		model_remove_pod(m, pod);
		if (model_update_pod(m, pod, &err) < 0)
			scale_die("pod", &err);
		uint64_t begun_ns = clock_now_ns(), begun_cpu_ns = scale_computed_ns();
		char *ranks = extender_prioritize(m, args);
		cpu_ns[i] = scale_computed_ns() - begun_cpu_ns;
		own_ns[i] = clock_now_ns() - begun_ns;
		free(ranks);
		json_decref(pod);
		call_args_put(args);
		free(changed);
		free(text);
	}
	if (figures) {
		note("prioritize", json_pack("{s:s,s:s,s:f,s:f}", "what", kinds[kind].what, "policy",
					     policy, "p50_ms", scale_part_ms(own_ns, ROUNDS, 0.5),
					     "p99_ms", scale_part_ms(own_ns, ROUNDS, 0.99)));
		return;
	}
	printf("  prioritize by %s, %-31s: p50 %6.2f ms, p99 %6.2f ms (computed %6.2f, %6.2f)\n",
	       policy, kinds[kind].what, scale_part_ms(own_ns, ROUNDS, 0.5),
	       scale_part_ms(own_ns, ROUNDS, 0.99), scale_part_ms(cpu_ns, ROUNDS, 0.5),
	       scale_part_ms(cpu_ns, ROUNDS, 0.99));
}

/* kube-scheduler's default: it asks about so many of the nodes (its documentation, percentageOfNodesToScore). */
static unsigned names_asked(unsigned nodes)
{
	unsigned pct = nodes / 125 < 45 ? 50 - nodes / 125 : 5, names = nodes * pct / 100;
	return nodes <= 100 ? nodes : names < 100 ? 100 : names;
}

/* kube-scheduler's next call: about the nodes that fit. */
static struct call_args *args_of_fit(const struct filter_answer *answer)
{
	const struct call_args *args = answer->args;
	json_t *names = json_array();
	for (size_t i = 0; i < args->count; i++)
		if (answer->verdict[i].list == FILTER_FITS)
			json_array_append_new(names, json_string(args->name[i].text));
	return call_args_of(json_pack("{s:O,s:o}", "Pod", json_object_get(args->object, "Pod"),
				      "NodeNames", names));
}

/* The first that prioritize's answer has at the top; "": there is none. The answer is given up. */
static void find_best(char *ranks, char best[SCALE_NAME_MAX])
{
	static const char top[] = "\",\"Score\":10}";
	char *end = strstr(ranks, top);
	*best = '\0';
	if (end) {
		*end = '\0';
		snprintf(best, SCALE_NAME_MAX, "%s", strrchr(ranks, '"') + 1);
	}
	free(ranks);
}

static void bind(struct model *m, const json_t *pod, const struct decision *d)
{
	struct error err = { 0 };
	json_t *bound = json_deep_copy(pod);
	char *shares = shares_format(&d->shares);
	json_t *annotations = json_object_get(json_object_get(bound, "metadata"), "annotations");
	json_object_set_new(annotations, KUBE_POD_NODE, json_string(d->node));
	json_object_set_new(annotations, KUBE_POD_ALLOCATED, json_string(shares));
	json_object_set_new(json_object_get(bound, "spec"), "nodeName", json_string(d->node));
	if (model_update_pod(m, bound, &err) < 0)
		scale_die("pod", &err);
	free(shares);
	json_decref(bound);
}

/* One decision from its first call to the pod that is bound; whether it found a place. */
static bool place(struct model *m, unsigned number, unsigned nodes)
{
	struct decision d;
	struct error err = { 0 };
	unsigned names = names_asked(nodes);
	char *text = args_text(0, number, number * 97 % nodes, names, nodes, "binpack");
	struct call_args *args = read_args(text, strlen(text));
	struct filter_answer *answer = extender_filter(m, args);
	char *said = filter_answer_text(answer);
	struct call_args *fit = args_of_fit(answer);
	char best[SCALE_NAME_MAX];
	find_best(extender_prioritize(m, fit), best);
	const json_t *pod = json_object_get(args->object, "Pod");
	const char *uid = json_string_value(json_object_get(json_object_get(pod, "metadata"), "uid"));
	json_t *call = json_pack("{s:s,s:s,s:s,s:s}", "PodName", uid, "PodNamespace", "team-b",
				 "PodUID", uid, "Node", best);
	bool is_placed = *best && extender_decide(m, call, clock_now_ns(), &d, &err) == 0;
	if (is_placed) {
		bind(m, pod, &d);
		decision_free(&d);
	}
	json_decref(call);
	call_args_put(fit);
	filter_answer_put(answer);
	call_args_put(args);
	free(said);
	free(text);
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
	if (figures) {
		json_object_set_new(figures, "decision_ms", json_real((double)ns / 1e6 / tries));
		json_object_set_new(figures, "placed_per_s",
				    json_real((double)placed * 1e9 / (double)ns));
		return;
	}
	printf("  %u of %u pods placed, asked about %u nodes each: %.2f ms a decision, %.0f a "
	       "second\n",
	       placed, tries, names_asked(nodes), (double)ns / 1e6 / tries,
	       (double)placed * 1e9 / (double)ns);
}

/* Time that the page takes of the thread: one look at all nodes, and what a reader gets, first everything and then the changes. */
static void time_page(struct model *m, unsigned nodes, const char *what, const struct view *view)
{
	uint64_t look_ns[ROUNDS], all_ns[ROUNDS], news_ns[ROUNDS];
	size_t all_bytes = 0, news_bytes = 0;
	struct reasons *reasons = reasons_new();
	struct sent_state sent = { 0 };
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct error err;
		struct aggregate aggregate;
		struct sent_state none = { 0 };
		struct json_text t = { 0 };
		char *changed = scale_pod_text(i * 97 % (nodes * SCALE_PODS_PER_NODE));
		json_t *pod = json_loads(changed, 0, NULL);
		model_remove_pod(m, pod);
		uint64_t begun_ns = scale_computed_ns();
		if (aggregate_make(m, &aggregate) < 0)
			exit(1);
		look_ns[i] = scale_computed_ns() - begun_ns;
		const struct page_cluster c = { m, &aggregate, reasons, true, true, "none", 1 };
		begun_ns = scale_computed_ns();
		page_cluster_write(&c, view, &none, &t);
		all_ns[i] = scale_computed_ns() - begun_ns;
		all_bytes = t.used;
		free(json_text_end(&t));
		begun_ns = scale_computed_ns();
		page_cluster_write(&c, view, &sent, &t);
		news_ns[i] = scale_computed_ns() - begun_ns;
		news_bytes = i ? news_bytes + t.used : 0;
		free(json_text_end(&t));
		aggregate_free(&aggregate);
		if (model_update_pod(m, pod, &err) < 0)
			scale_die("pod", &err);
		json_decref(pod);
		free(changed);
	}
	printf("  page, %-35s: look %5.2f ms, all %5.2f ms (%zu bytes), news %5.2f ms (%zu bytes); "
	       "p99 "
	       "%5.2f, %5.2f, %5.2f\n",
	       what, scale_part_ms(look_ns, ROUNDS, 0.5), scale_part_ms(all_ns, ROUNDS, 0.5),
	       all_bytes, scale_part_ms(news_ns, ROUNDS, 0.5), news_bytes / (ROUNDS - 1),
	       scale_part_ms(look_ns, ROUNDS, 0.99), scale_part_ms(all_ns, ROUNDS, 0.99),
	       scale_part_ms(news_ns, ROUNDS, 0.99));
	reasons_free(reasons);
}

static void time_pages(struct model *m, unsigned nodes)
{
	const unsigned any = (1U << VIEW_NODE_STATES) - 1, any_pod = (1U << VIEW_POD_STATES) - 1;
	struct view view = { .node_states = any, .pod_states = 1U << VIEW_WAITING };
	scale_node_name(nodes / 2, view.open);
	time_page(m, nodes, "pods that wait, a node is open", &view);
	view.order = VIEW_BY_MEMORY;
	time_page(m, nodes, "nodes by memory", &view);
	view.pod_states = any_pod;
	time_page(m, nodes, "all pods", &view);
	strcpy(view.pod_namespace, "team-a");
	time_page(m, nodes, "all pods of a namespace", &view);
}

static void measure(unsigned nodes)
{
	double empty_mib = resident_mib(), s;
	const struct model_terms terms = { .request = request_terms_default };
	struct model *m = scale_know(&terms, nodes, &s);
	struct model_counts counts = model_counts(m);
	if (figures)
		json_object_update(figures, json_pack("{s:i,s:I,s:I,s:f}", "nodes", (int)nodes,
						      "cards", (json_int_t)counts.cards, "pods",
						      (json_int_t)counts.pods, "known_s", s));
	else
		printf("%u nodes, %zu cards, %zu pods: known in %.2f s, %.1f MiB (%.1f MiB the "
		       "whole "
		       "process)\n",
		       nodes, counts.cards, counts.pods, s, resident_mib() - empty_mib,
		       resident_mib());
	for (unsigned kind = 0; kind < KINDS; kind++)
		time_filter(m, kind, nodes);
	for (unsigned kind = 0; kind < 2; kind++) {
		time_prioritize(m, kind, nodes, "binpack");
		time_prioritize(m, kind, nodes, "fragmentation");
	}
	if (!figures)
		time_pages(m, nodes);
	time_places(m, nodes);
	if (figures) {
		json_object_set_new(figures, "resident_mib", json_real(resident_mib()));
		json_dumpf(figures, stdout, JSON_COMPACT);
		printf("\n");
	} else {
		printf("  %.1f MiB the whole process\n", resident_mib());
	}
	model_free(m);
}

/* Each in a process of its own, whose memory is its own. */
int main(int argc, char **argv)
{
	static const char *const usual[] = { "100", "1000", "5000" };
	heap_keep(); /* as allot-scheduler does */
	bool is_json = argc > 1 && !strcmp(argv[1], "--json");
	const char *const *sizes = argc > 1 + is_json ? (const char *const *)argv + 1 + is_json
						      : usual;
	int count = argc > 1 + is_json ? argc - 1 - is_json : 3;
	for (int i = 0; i < count; i++) {
		unsigned nodes = (unsigned)strtoul(sizes[i], NULL, 10);
		int status = 1;
		if (nodes < 1 || nodes > 100000) {
			fprintf(stderr, "scheduler-scale: '%s': must be 1 to 100000 nodes\n",
				sizes[i]);
			return 2;
		}
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			figures = is_json ? json_object() : NULL;
			measure(nodes);
			json_decref(figures);
			return 0;
		}
		if (child < 0 || waitpid(child, &status, 0) < 0 || status)
			return 1;
	}
	return 0;
}
