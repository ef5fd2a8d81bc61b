/*
 * The cost of leaving nodes to a gang (scheduler/gang/backfill_reservation.h), and of asking whether the end of others would
 * make room for one, in clusters of several sizes: prints, for each, the time of the decisions concerned, asked about all nodes
 * and about as many as kube-scheduler asks about by default.
 *
 *     scheduler-ward [NODES...]      100 1000 5000
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "kube/hami/annotations.h"
#include "scale_cluster.h"
#include "scheduler/extender/extender.h"
#include "scheduler/model/model_inside.h"

#define ROUNDS 40
#define GANG 16 /* pods, each of which wants a node's cards whole */
#define PATIENCE_NS (300 * NSEC_PER_SEC)

static uint64_t now_ns = NSEC_PER_SEC;

static json_t *member(unsigned gang, unsigned i, int priority)
{
	char text[1024];
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"g%u-%u\",\"namespace\":\"team-b\",\"uid\":\"g%u-%u\","
		 "\"resourceVersion\":\"1\",\"annotations\":{\"allot.dev/gang\":\"g%u\","
		 "\"allot.dev/"
		 "gang-size\":\"%u\"}},\"spec\":{\"priority\":%d,\"containers\":[{\"name\":\"a\","
		 "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"8\"}}}]},\"status\":{\"phase\":"
		 "\"Pending\"}}",
		 gang, i, gang, i, gang, GANG, priority);
	return json_loads(text, 0, NULL);
}

static json_t *lone(void)
{
	return json_loads(
		"{\"metadata\":{\"name\":\"l\",\"namespace\":\"team-b\",\"uid\":\"l\","
		"\"resourceVersion\":\"1\"},\"spec\":{\"containers\":[{\"name\":\"a\","
		"\"resources\":{"
		"\"limits\":{\"nvidia.com/gpumem\":\"30000\",\"nvidia.com/gpucores\":\"40\"}}}]},"
		"\"status\":{\"phase\":\"Pending\"}}",
		0, NULL);
}

static json_t *names_of(unsigned nodes, unsigned count)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < count; i++) {
		char name[SCALE_NAME_MAX];
		scale_node_name(i, name);
		json_array_append_new(list, json_string(name));
	}
	return list;
}

/* One call of filter; the pod is given up. */
static uint64_t ask(struct model *m, json_t *pod, json_t *names)
{
	struct call_args *args = call_args_of(
		json_pack("{s:o,s:n,s:O}", "Pod", pod, "Nodes", "NodeNames", names));
	uint64_t begun_ns = scale_computed_ns();
	struct filter_answer *answer = args ? extender_filter(m, args) : NULL;
	uint64_t ns = scale_computed_ns() - begun_ns;
	filter_answer_put(answer);
	call_args_put(args);
	return ns;
}

/* Would the end of others seat the gang? */
static uint64_t preempt(struct model *m, json_t *pod, json_t *names)
{
	json_t *nodes = json_object(), *name;
	size_t i;
	/* kube-scheduler names victims on a hundred nodes, or a tenth. */
	json_array_foreach(names, i, name) if (i < 100)
		json_object_set_new(nodes, json_string_value(name), json_pack("{s:[]}", "Pods"));
	json_t *args = json_pack("{s:o,s:o}", "Pod", pod, "NodeNameToMetaVictims", nodes);
	uint64_t begun_ns = scale_computed_ns();
	json_t *answer = extender_preempt(m, args);
	uint64_t ns = scale_computed_ns() - begun_ns;
	json_decref(answer);
	json_decref(args);
	return ns;
}

static void give_gang(struct model *m, unsigned gang, int priority, bool is_there)
{
	struct error err;
	for (unsigned i = 0; i < GANG; i++) {
		json_t *pod = member(gang, i, priority);
		if (!is_there)
			model_remove_pod(m, pod);
		else if (model_update_pod(m, pod, &err) < 0)
			scale_die("pod", &err);
		json_decref(pod);
	}
}

static void time_lone(struct model *m, json_t *names, const char *when)
{
	uint64_t ns[ROUNDS];
	for (unsigned i = 0; i < ROUNDS; i++)
		ns[i] = ask(m, lone(), names);
	printf("    filter of a lone pod %s: p50 %.2f ms, p99 %.2f ms\n", when,
	       scale_part_ms(ns, ROUNDS, 0.5), scale_part_ms(ns, ROUNDS, 0.99));
}

static void time_names(struct model *m, json_t *names)
{
	uint64_t begun[ROUNDS], ended[ROUNDS], again[ROUNDS], victims[ROUNDS];
	printf("  asked about %zu nodes\n", json_array_size(names));
	time_lone(m, names, "beside no ward");
	for (unsigned i = 0; i < ROUNDS; i++) {
		give_gang(m, i, 0, true);
		ask(m, member(i, 0, 0), names);
		if (m->reservation)
			exit(1);
		again[i] = ask(m, member(i, 1, 0), names);
		now_ns += PATIENCE_NS;
		model_advance(m, now_ns);
		begun[i] = ask(m, member(i, 0, 0), names);
		if (!m->reservation) {
			fprintf(stderr, "scheduler-ward: no ward was given\n");
			exit(1);
		}
		if (!i)
			time_lone(m, names, "beside a ward");
		uint64_t begun_ns = scale_computed_ns();
		give_gang(m, i, 0, false);
		ended[i] = scale_computed_ns() - begun_ns;
	}
	printf("    a gang of %d that is told no: p50 %.2f ms, p99 %.2f ms\n", GANG,
	       scale_part_ms(again, ROUNDS, 0.5), scale_part_ms(again, ROUNDS, 0.99));
	printf("    that is given a ward, once a patience: p50 %.2f ms, p99 %.2f ms; its end %.2f, "
	       "%.2f\n",
	       scale_part_ms(begun, ROUNDS, 0.5), scale_part_ms(begun, ROUNDS, 0.99),
	       scale_part_ms(ended, ROUNDS, 0.5), scale_part_ms(ended, ROUNDS, 0.99));
	give_gang(m, ROUNDS, 10, true);
	ask(m, member(ROUNDS, 0, 10), names);
	for (unsigned i = 0; i < ROUNDS; i++)
		victims[i] = preempt(m, member(ROUNDS, 0, 10), names);
	give_gang(m, ROUNDS, 10, false);
	printf("    preempt for one of it, at 100 nodes: p50 %.2f ms, p99 %.2f ms\n",
	       scale_part_ms(victims, ROUNDS, 0.5), scale_part_ms(victims, ROUNDS, 0.99));
}

static void measure(unsigned nodes)
{
	const struct model_terms terms = { .request = request_terms_default,
					   .gang_hold_ns = 30 * NSEC_PER_SEC,
					   .gang_patience_ns = PATIENCE_NS };
	double s;
	unsigned pct = nodes / 125 < 45 ? 50 - nodes / 125 : 5, few = nodes * pct / 100;
	struct model *m = scale_know(&terms, nodes, &s);
	json_t *all = names_of(nodes, nodes);
	/* kube-scheduler's default (its documentation, percentageOfNodesToScore). */
	json_t *usual = names_of(nodes, few < 100 ? (nodes < 100 ? nodes : 100) : few);
	model_advance(m, now_ns);
	printf("%u nodes, %u pods on them\n", nodes, nodes * SCALE_PODS_PER_NODE);
	time_names(m, all);
	time_names(m, usual);
	json_decref(all);
	json_decref(usual);
	model_free(m);
}

int main(int argc, char **argv)
{
	static const char *const usual[] = { "100", "1000", "5000" };
	for (int i = 1; i < (argc > 1 ? argc : 4); i++) {
		unsigned nodes = (unsigned)strtoul(argc > 1 ? argv[i] : usual[i - 1], NULL, 10);
		if (nodes < GANG || nodes > 100000) {
			fprintf(stderr, "scheduler-ward: '%s': must be %d to 100000 nodes\n",
				argv[i], GANG);
			return 2;
		}
		measure(nodes);
	}
	return 0;
}
