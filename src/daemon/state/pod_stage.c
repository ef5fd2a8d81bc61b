#include "daemon/state/pod_stage.h"

#include <stdlib.h>
#include <string.h>

struct pod_stage pod_stage_of(const char *key)
{
	struct pod_stage stage = { 0 };
	size_t prefix = strlen(POD_KEY);
	const char *slash = strncmp(key, POD_KEY, prefix) != 0 ? NULL : strchr(key + prefix, '/');
	if (!slash)
		return stage;
	stage.uid = key + prefix;
	stage.uid_length = (size_t)(slash - stage.uid);
	size_t name = strcspn(slash + 1, "/@");
	if (slash[1 + name] != '@')
		return stage;
	char *end;
	stage.place = (unsigned)strtoul(slash + 1 + name + 1, &end, 10);
	stage.is_sidecar = *end == '+';
	stage.is_init = !stage.is_sidecar;
	return stage;
}

static bool is_same_pod(const struct pod_stage *a, const struct pod_stage *b)
{
	return a->uid && b->uid && a->uid_length == b->uid_length &&
	       !memcmp(a->uid, b->uid, a->uid_length);
}

/* Returns true if the container runs at the same time as `init` or, if `init` is NULL, as the pod's ordinary containers. */
static bool runs_beside(const struct pod_stage *stage, const struct pod_stage *init)
{
	if (stage->is_sidecar)
		return !init || stage->place < init->place;
	return stage->is_init ? init && stage->place == init->place : !init;
}

static struct stage_amount sum(const struct stage_item *items, size_t count,
			       const struct pod_stage *pod, const struct pod_stage *init,
			       bool of_all)
{
	struct stage_amount s = { 0 };
	for (size_t i = 0; i < count; i++) {
		const struct stage_amount *a = &items[i].amount;
		if (!is_same_pod(&items[i].stage, pod) ||
		    (!of_all && !runs_beside(&items[i].stage, init)))
			continue;
		s.promised_bytes += a->promised_bytes;
		s.granted_bytes += a->granted_bytes;
		s.cores_pct += a->cores_pct;
	}
	return s;
}

static void raise_to(struct stage_amount *most, const struct stage_amount *a)
{
	if (a->promised_bytes > most->promised_bytes)
		most->promised_bytes = a->promised_bytes;
	if (a->granted_bytes > most->granted_bytes)
		most->granted_bytes = a->granted_bytes;
	if (a->cores_pct > most->cores_pct)
		most->cores_pct = a->cores_pct;
}

/* Returns the maximum over the pod's stages or, if `beside` is given, over the stages in which `beside` runs. */
static struct stage_amount needed(const struct stage_item *items, size_t count,
				  const struct pod_stage *pod, const struct pod_stage *beside)
{
	struct stage_amount most = { 0 };
	const struct pod_stage *own = beside && beside->is_init ? beside : NULL;
	struct stage_amount s = sum(items, count, pod, own, false);
	raise_to(&most, &s);
	for (size_t i = 0; i < count && !own; i++) {
		const struct pod_stage *init = &items[i].stage;
		if (!init->is_init || !is_same_pod(init, pod) ||
		    (beside && !runs_beside(beside, init)))
			continue;
		s = sum(items, count, pod, init, false);
		raise_to(&most, &s);
	}
	return most;
}

static void add_unneeded(struct stage_amount *unneeded, const struct stage_item *items,
			 size_t count, const struct pod_stage *pod, const struct pod_stage *beside)
{
	struct stage_amount all = sum(items, count, pod, NULL, true);
	struct stage_amount need = needed(items, count, pod, beside);
	unneeded->promised_bytes += all.promised_bytes - need.promised_bytes;
	unneeded->granted_bytes += all.granted_bytes - need.granted_bytes;
	unneeded->cores_pct += all.cores_pct - need.cores_pct;
}

static bool is_first_init(const struct stage_item *items, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (items[i].stage.is_init && is_same_pod(&items[i].stage, &items[at].stage))
			return false;
	return items[at].stage.is_init;
}

struct stage_amount pod_stage_unneeded(const struct stage_item *items, size_t count,
				       const struct pod_stage *beside)
{
	struct stage_amount unneeded = { 0 };
	if (beside && beside->uid)
		add_unneeded(&unneeded, items, count, beside, beside);
	for (size_t i = 0; i < count; i++)
		if (is_first_init(items, i) && !(beside && is_same_pod(&items[i].stage, beside)))
			add_unneeded(&unneeded, items, count, &items[i].stage, NULL);
	return unneeded;
}
