#include "scheduler/request/request_annotations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "kube/hami/annotations.h"

#define OWN(name) KUBE_LIVE_DOMAIN "/" name
#define BLANKS " \t"
#define WEIGHT_MOST 1000000

/* Cuts the first item off a comma-separated list, and the blanks around it. Returns NULL after the last item. */
static char *next_word(char **rest)
{
	char *word = strsep(rest, ",");
	if (!word)
		return NULL;
	word += strspn(word, BLANKS);
	for (size_t n = strlen(word); n && strchr(BLANKS, word[n - 1]); n--)
		word[n - 1] = '\0';
	return word;
}

/* The annotations that are lists; read_lists() has the same order in `to`. */
static const char *const lists[] = { REQUEST_USE_TYPE, REQUEST_NOUSE_TYPE, REQUEST_USE_UUID,
				     REQUEST_NOUSE_UUID };
#define LISTS (sizeof(lists) / sizeof(lists[0]))

static size_t count_words(const char *text)
{
	size_t words = 1;
	for (; *text; text++)
		words += *text == ',';
	return words;
}

static int read_lists(const struct kube_pod *pod, struct request *request,
		      struct place_request *place, struct error *err)
{
	struct place_words *const to[LISTS] = { &request->use_type, &request->nouse_type,
						&place->use_uuid, &place->nouse_uuid };
	const char *mode = pod_annotation(pod, REQUEST_MODE);
	size_t bytes = mode ? strlen(mode) + 1 : 0, words = 0;
	for (size_t i = 0; i < LISTS; i++) {
		const char *text = pod_annotation(pod, lists[i]);
		bytes += text ? strlen(text) + 1 : 0;
		words += text ? count_words(text) : 0;
	}
	request->text = malloc(bytes + 1);
	request->word = calloc(words + 1, sizeof(*request->word));
	if (!request->text || !request->word)
		return error_set_errno(err, ENOMEM, "request");
	char *at = request->text;
	size_t next = 0;
	for (size_t i = 0; i < LISTS; i++) {
		struct place_words *list = to[i];
		const char *text = pod_annotation(pod, lists[i]);
		char *rest = text ? at : NULL;
		at = text ? stpcpy(at, text) + 1 : at;
		list->word = request->word + next;
		for (const char *word; (word = next_word(&rest));)
			if (*word)
				request->word[next + list->count++] = word;
		next += list->count;
	}
	if (mode)
		request->mode = strcpy(at, mode);
	return 0;
}

/* Words of hami.io/gpu-scheduler-policy, with their evaluators (policy/placement/evaluate.h). NULL: sets is_mutex. */
static const struct policy {
	const char *word, *evaluator;
} policies[] = {
	{ "binpack", "binpack" },
	{ "spread", "spread" },
	/* "link" chooses all of a request's cards together, near each other */
	{ "topology-aware", "link" },
	{ "numa", "link" },
	{ "fragmentation", "room" },
	{ "mutex", NULL },
};

static int add_policy(const char *word, struct request *request, struct place_request *place,
		      struct error *err)
{
	const struct policy *row = policies, *end = policies + sizeof(policies) / sizeof(*policies);
	while (row < end && strcmp(row->word, word) != 0)
		row++;
	if (row == end)
		return error_set(
			err, EINVAL,
			"'%.40s': must be a comma-separated list of binpack, spread, topology-aware, numa, mutex and fragmentation",
			word);
	if (!row->evaluator) {
		request->is_mutex = true;
		return 0;
	}
	for (unsigned i = 0; i < place->evaluator_count; i++)
		if (!strcmp(place->evaluator[i], row->evaluator))
			return 0;
	place->evaluator[place->evaluator_count++] = row->evaluator;
	return 0;
}

/* If no word names an evaluator, "spread" applies. "fragment" decides among cards that the other evaluators rank equally. */
static int read_gpu_policy(const char *text, struct request *request, struct place_request *place,
			   struct error *err)
{
	char copy[128], *rest = copy;
	int r = 0;
	if (strlen(text) >= sizeof(copy))
		return error_set(err, EINVAL, "'%.40s...': must be at most %zu bytes", text,
				 sizeof(copy) - 1);
	strcpy(copy, text);
	for (const char *word; r >= 0 && (word = next_word(&rest));)
		r = add_policy(word, request, place, err);
	if (r >= 0 && !place->evaluator_count)
		place->evaluator[place->evaluator_count++] = "spread";
	if (r >= 0)
		place->evaluator[place->evaluator_count++] = "fragment";
	return r;
}

const char *const request_node_policy_names[] = { [REQUEST_NODES_BINPACK] = "binpack",
						  [REQUEST_NODES_SPREAD] = "spread",
						  [REQUEST_NODES_FRAGMENTATION] = "fragmentation",
						  [REQUEST_NODES_COUNT] = NULL };

static int read_node_policy(const char *text, struct request *request, struct error *err)
{
	for (unsigned i = 0; i < REQUEST_NODES_COUNT; i++)
		if (!strcmp(text, request_node_policy_names[i])) {
			request->node_policy = (enum request_node_policy)i;
			return 0;
		}
	return error_set(err, EINVAL, "'%.40s': must be binpack, spread or fragmentation", text);
}

static int parse_weight(char *word, struct place_weights *weights, unsigned *seen, struct error *err)
{
	static const char *const names[] = { "slot", "core", "memory" };
	unsigned *const to[] = { &weights->slots, &weights->cores, &weights->memory };
	char *value = strchr(word, '=');
	int64_t number;
	for (unsigned i = 0; value && i < 3; i++) {
		size_t length = (size_t)(value - word);
		if (strlen(names[i]) != length || strncmp(word, names[i], length) != 0 ||
		    (*seen >> i & 1))
			continue;
		int r = parse_int(value + 1, 0, WEIGHT_MOST, &number, err);
		if (r < 0)
			return error_add(err, r, "%s", names[i]);
		*to[i] = (unsigned)number;
		*seen |= 1U << i;
		return 0;
	}
	return error_set(err, EINVAL, "'%.40s': must be slot=N, core=N or memory=N, each once",
			 word);
}

static int read_weights(const char *text, struct place_request *place, struct error *err)
{
	char copy[96], *rest = copy;
	unsigned seen = 0;
	int r = 0;
	if (strlen(text) >= sizeof(copy))
		return error_set(err, EINVAL, "'%.40s...': must be at most %zu bytes", text,
				 sizeof(copy) - 1);
	strcpy(copy, text);
	for (char *word; r >= 0 && (word = next_word(&rest));)
		r = parse_weight(word, &place->weights, &seen, err);
	const struct place_weights *w = &place->weights;
	if (r >= 0 && (seen != 7 || (!w->slots && !w->cores && !w->memory)))
		return error_set(
			err, EINVAL,
			"'%.40s': must be slot=N,core=N,memory=N, with at least one N above 0",
			text);
	place->has_weights = r >= 0;
	return r;
}

/* As in HAMi, any text that is not in this list means false. */
static bool is_true(const char *text)
{
	static const char *const truths[] = { "true", "True", "TRUE", "t", "T", "1" };
	for (size_t i = 0; text && i < sizeof(truths) / sizeof(truths[0]); i++)
		if (!strcmp(text, truths[i]))
			return true;
	return false;
}

/* Without allot.dev/placement, a pod is opportunistic if its workload is inference. */
static int read_placement(const struct kube_pod *pod, struct request *request, struct error *err)
{
	const char *placement = pod_annotation(pod, OWN(KUBE_PLACEMENT));
	const char *workload = pod_annotation(pod, OWN(KUBE_WORKLOAD));
	if (placement && strcmp(placement, "use") != 0 && strcmp(placement, "guarantee") != 0)
		return error_set(err, EINVAL,
				 OWN(KUBE_PLACEMENT) ": '%.40s': must be 'use' or 'guarantee'",
				 placement);
	request->is_opportunistic = placement ? !strcmp(placement, "use")
					      : workload && !strcmp(workload, "inference");
	return 0;
}

int request_read_annotations(const struct kube_pod *pod, const struct request_terms *terms,
			     struct request *request, struct place_request *ret_place,
			     struct error *err)
{
	struct place_request place = { 0 };
	const char *gpu = pod_annotation(pod, REQUEST_GPU_POLICY);
	const char *node = pod_annotation(pod, REQUEST_NODE_POLICY);
	const char *weights = pod_annotation(pod, REQUEST_WEIGHTS);
	int r = read_lists(pod, request, &place, err);
	if (r < 0)
		return r;
	r = read_gpu_policy(gpu ? gpu : terms->gpu_policy, request, &place, err);
	if (r < 0)
		return error_add(err, r, REQUEST_GPU_POLICY);
	r = read_node_policy(node ? node : terms->node_policy, request, err);
	if (r < 0)
		return error_add(err, r, REQUEST_NODE_POLICY);
	r = weights ? read_weights(weights, &place, err) : 0;
	if (r < 0)
		return error_add(err, r, REQUEST_WEIGHTS);
	r = terms->places_by_use ? read_placement(pod, request, err) : 0;
	if (r < 0)
		return r;
	place.numa_bind = is_true(pod_annotation(pod, REQUEST_NUMA_BIND));
	*ret_place = place;
	return 0;
}
