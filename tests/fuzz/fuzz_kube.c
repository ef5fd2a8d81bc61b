/*
 * What others write into Kubernetes' objects, and a kubeconfig: what is read can be written, and is the same when
 * it is read again; what is refused is told in one line.
 */
#include "fuzz.h"

#include <errno.h>

#include "base/error.h"
#include "base/text.h"
#include "json_arena.h"
#include "kube/dra/resource_claim.h"
#include "kube/gpu_manager/vcuda.h"
#include "kube/hami/cards.h"
#include "kube/hami/find_allocating.h"
#include "kube/hami/cordon.h"
#include "kube/hami/handshake.h"
#include "kube/hami/node_lock.h"
#include "kube/hami/priority.h"
#include "kube/hami/scores.h"
#include "kube/own/live.h"
#include "kube/own/node_cards.h"
#include "kube/util/base64.h"
#include "kube/util/yaml.h"

static void check_error(const struct error *err)
{
	FUZZ_CHECK(err->code > 0 && err->text[0]);
	FUZZ_CHECK(*text_clean_prefix_end(err->text, sizeof(err->text)) == '\0');
}

static void take_cards(const char *text)
{
	struct kube_cards cards, again;
	struct error err = { 0 };
	if (cards_parse(text, &cards, &err) < 0) {
		check_error(&err);
		return;
	}
	char *written = cards_format(&cards);
	/* The old text may hold what is no UTF-8. */
	if (written) {
		FUZZ_CHECK(cards_parse(written, &again, NULL) == 0 && again.count == cards.count);
		char *twice = cards_format(&again);
		FUZZ_CHECK(twice && !strcmp(written, twice));
		free(twice);
		cards_free(&again);
	}
	free(written);
	cards_free(&cards);
}

static void take_uses(const char *text)
{
	struct kube_uses uses, again;
	struct error err = { 0 };
	if (uses_parse(text, &uses, &err) < 0) {
		check_error(&err);
		return;
	}
	char *written = uses_format(&uses);
	FUZZ_CHECK(written && uses_parse(written, &again, NULL) == 0);
	FUZZ_CHECK(again.count == uses.count && again.measured_s == uses.measured_s);
	char *twice = uses_format(&again);
	FUZZ_CHECK(twice && !strcmp(written, twice));
	free(twice);
	free(written);
	uses_free(&again);
	uses_free(&uses);
}

static void take_cooldowns(const char *text)
{
	struct kube_cooldowns cooldowns, again;
	struct error err = { 0 };
	if (cooldowns_parse(text, &cooldowns, &err) < 0) {
		check_error(&err);
		return;
	}
	char *written = cooldowns_format(&cooldowns);
	FUZZ_CHECK(written && cooldowns_parse(written, &again, NULL) == 0);
	FUZZ_CHECK(again.count == cooldowns.count);
	char *twice = cooldowns_format(&again);
	FUZZ_CHECK(twice && !strcmp(written, twice));
	free(twice);
	free(written);
	cooldowns_free(&again);
	cooldowns_free(&cooldowns);
}

static void take_scores(const char *text)
{
	struct kube_scores scores, again;
	struct error err = { 0 };
	if (scores_parse(text, &scores, &err) < 0) {
		check_error(&err);
		return;
	}
	char *written = scores_format(&scores);
	FUZZ_CHECK(written && scores_parse(written, &again, NULL) == 0);
	FUZZ_CHECK(again.count == scores.count);
	for (size_t i = 0; i < scores.count * scores.count; i++)
		FUZZ_CHECK(again.score[i] == scores.score[i] || i % (scores.count + 1) == 0);
	free(written);
	scores_free(&again);
	scores_free(&scores);
}

static void take_shares(const char *text)
{
	struct kube_shares shares, again;
	struct error err = { 0 };
	if (shares_parse(text, &shares, &err) < 0) {
		check_error(&err);
		return;
	}
	char *written = shares_format(&shares);
	FUZZ_CHECK(written && shares_parse(written, &again, NULL) == 0);
	FUZZ_CHECK(again.containers == shares.containers);
	FUZZ_CHECK(shares_equal(shares.share, shares.count, again.share, again.count));
	if (shares.count) {
		size_t count, of = shares.share[0].container;
		shares_erase(&again, of);
		shares_of(&again, of, &count);
		FUZZ_CHECK(count == 0 && again.count < shares.count);
	}
	free(written);
	shares_free(&again);
	shares_free(&shares);
}

static void take_lock(const char *text)
{
	struct node_lock lock, again;
	struct error err = { 0 };
	char written[NODE_LOCK_MAX];
	if (node_lock_parse(text, &lock, &err) < 0) {
		check_error(&err);
		return;
	}
	node_lock_format(&lock, written);
	FUZZ_CHECK(node_lock_parse(written, &again, NULL) == 0 && again.since_s == lock.since_s);
	FUZZ_CHECK(node_lock_is_of(&again, lock.pod_namespace, lock.pod));
}

/* A pod whose annotation says that. */
static void take_choice(const char *text)
{
	static const char *const ids[] = { "GPU-a-0" };
	struct kube_pod *pod;
	struct choice choice;
	struct error err = { 0 };
	json_t *object = json_pack("{s:{s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s}},s:{s:[{s:s},{s:s}]}}",
				   "metadata", "name", "p", "namespace", "n", "uid", "u",
				   "resourceVersion", "1", "annotations", "hami.io/bind-phase",
				   "allocating", "hami.io/vgpu-node", "here",
				   "hami.io/vgpu-devices-to-allocate", text, "spec", "containers",
				   "name", "a", "name", "b");
	if (!object)
		return; /* no UTF-8: no API server lets it in */
	FUZZ_CHECK(pod_read(object, &pod, NULL) == 0);
	const struct choice_query q = { .node = "here",
					.pod = (const struct kube_pod *const *)&pod,
					.pod_count = 1,
					.id = ids,
					.id_count = 1 };
	if (choice_make(&q, &choice, &err) < 0) {
		check_error(&err);
	} else {
		FUZZ_CHECK(choice.container < 2 && choice.share_count == 1);
		shares_free(&choice.shares);
	}
	pod_free(pod);
	json_decref(object);
}

/* A pod's annotations for each of its containers. */
static void take_live(const struct kube_pod *pod)
{
	char *text = live_text(pod);
	FUZZ_CHECK(text);
	for (size_t i = 0; i < pod->containers; i++) {
		struct kube_live live;
		struct error err = { 0 };
		if (live_read(pod, pod->container[i], &live, &err) < 0) {
			check_error(&err);
			FUZZ_CHECK(*text); /* where nothing is said, nothing is wrong */
			continue;
		}
		FUZZ_CHECK(live.memories <= LIVE_VALUES_MAX && live.cores <= LIVE_VALUES_MAX);
		for (size_t k = 0; k < live.cores; k++)
			FUZZ_CHECK(live.cores_pct[k] >= 0 && live.cores_pct[k] <= 100);
		FUZZ_CHECK(live.priority >= -100 && live.priority <= 100);
		for (size_t k = 0; k < live.memories; k++)
			FUZZ_CHECK(live.memory_bytes[k] > 0);
	}
	free(text);
}

/* And what they ask for. */
static void take_limits(const struct kube_pod *pod)
{
	for (size_t i = 0; i < pod->containers; i++) {
		int priority = -1;
		struct error err = { 0 };
		if (priority_read(pod, i, "nvidia.com/priority", &priority, &err) < 0)
			check_error(&err);
		else
			FUZZ_CHECK(priority == 0 || priority == KUBE_PRIORITY_HIGH);
	}
}

/* One of which an annotation of ours is that text: which, the text's length says, as each is short. */
static void take_live_text(const char *text)
{
	static const char *const names[] = { "memory",  "cores",   "cores-limit",
					     "on-full", "sharing", "priority" };
	struct kube_pod *pod;
	char name[40];
	snprintf(name, sizeof(name), "allot.dev/%s",
		 names[strlen(text) % (sizeof(names) / sizeof(names[0]))]);
	json_t *object = json_pack("{s:{s:s,s:s,s:s,s:s,s:{s:s}},s:{s:[{s:s}]}}", "metadata",
				   "name", "p", "namespace", "n", "uid", "u", "resourceVersion", "1",
				   "annotations", name, text, "spec", "containers", "name", "a");
	if (!object)
		return; /* no UTF-8: no API server lets it in */
	FUZZ_CHECK(pod_read(object, &pod, NULL) == 0);
	take_live(pod);
	pod_free(pod);
	json_decref(object);
}

/* What each of a pod's containers asks for in gpu-manager's vocabulary. */
static void take_vcuda(const struct kube_pod *pod)
{
	static const struct vcuda_names names = { "tencent.com/vcuda-core",
						  "tencent.com/vcuda-memory" };
	for (size_t i = 0; i < pod->containers; i++) {
		struct vcuda_request ask;
		struct error err = { 0 };
		int r = vcuda_request_read(pod, i, &names, &ask, &err);
		if (r == -ENODATA)
			continue;
		if (r < 0) {
			check_error(&err);
			continue;
		}
		FUZZ_CHECK(ask.cards > 0 && ask.cards <= VCUDA_MAX_CARDS);
		FUZZ_CHECK(ask.cores > 0 && vcuda_cores_pct(&ask) <= VCUDA_CORES_WHOLE);
		FUZZ_CHECK(vcuda_limit_pct(&ask) >= vcuda_cores_pct(&ask) &&
			   vcuda_limit_pct(&ask) <= VCUDA_CORES_WHOLE);
		FUZZ_CHECK(!ask.chosen || ask.chosen == ask.cards);
		FUZZ_CHECK(ask.units || vcuda_cores_pct(&ask) == VCUDA_CORES_WHOLE);
	}
}

/* One of whose values each is that text, and the others are as they should be. */
static void take_vcuda_text(const char *text)
{
	for (unsigned which = 0; which < 5; which++) {
		struct kube_pod *pod;
		json_t *object = json_pack("{s:{s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s,s:s,s:s}},s:{s:[{s:"
					   "s,s:{s:{s:s,s:s}}}]}}",
					   "metadata", "name", "p", "namespace", "n", "uid", "u",
					   "resourceVersion", "1", "annotations", VCUDA_TIME, "1",
					   VCUDA_ASSIGNED, "false", VCUDA_INDEX "0",
					   which == 0 ? text : "0,1", VCUDA_LIMIT,
					   which == 1 ? text : "60", "allot.dev/cards",
					   which == 2 ? text : "2", "spec", "containers", "name",
					   "a", "resources", "limits", "tencent.com/vcuda-core",
					   which == 3 ? text : "50", "tencent.com/vcuda-memory",
					   which == 4 ? text : "7");
		if (!object)
			return; /* no UTF-8: no API server lets it in */
		FUZZ_CHECK(pod_read(object, &pod, NULL) == 0);
		take_vcuda(pod);
		pod_free(pod);
		json_decref(object);
	}
}

/* Any object that might come as a pod. */
static void take_pod(const char *text)
{
	json_t *object = json_loads(text, 0, NULL);
	struct kube_pod *pod;
	struct error err = { 0 };
	if (!object)
		return;
	json_t *essence = pod_copy_trimmed(object);
	if (essence && pod_read(essence, &pod, &err) < 0)
		check_error(&err);
	else if (essence) {
		take_live(pod);
		take_limits(pod);
		take_vcuda(pod);
		pod_free(pod);
	}
	json_decref(essence);
	json_decref(object);
}

static void take_claim(const char *text)
{
	struct dra_claim claim;
	struct error err = { 0 };
	json_t *object = json_loads(text, 0, NULL);
	if (!object)
		return;
	if (dra_claim_read(object, &claim, &err) < 0) {
		check_error(&err);
		json_decref(object);
		return;
	}
	for (size_t i = 0; i < claim.count; i++) {
		const struct dra_result *r = &claim.result[i];
		FUZZ_CHECK(r->is_whole || r->memory_bytes > 0);
		FUZZ_CHECK(r->cores_pct >= 0 && r->cores_pct <= 100);
		FUZZ_CHECK(!r->terms.has_cores_limit || r->terms.cores_limit_pct <= 100);
	}
	dra_claim_free(&claim);
	json_decref(object);
}

static void take_yaml(const char *text)
{
	json_t *value;
	struct error err = { 0 };
	if (yaml_parse(text, &value, &err) < 0)
		FUZZ_CHECK(err.code > 0 && err.text[0]);
	else
		json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *decoded = NULL;
	json_arena_begin();
	take_cards(text);
	take_scores(text);
	take_uses(text);
	take_cooldowns(text);
	take_shares(text);
	take_lock(text);
	take_choice(text);
	take_live_text(text);
	take_vcuda_text(text);
	take_pod(text);
	take_claim(text);
	take_yaml(text);
	handshake_parse(text);
	cordon_has(text, "GPU-a");
	if (base64_decode(text, &decoded) == 0)
		free(decoded);
	free(text);
	json_arena_end();
	return 0;
}
