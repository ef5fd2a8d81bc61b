#include "scheduler/page/reasons.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "scheduler/explain/explain.h"
#include "scheduler/page/wait_summary.h"

/* Only reasons requested within this time are computed. A page that shows a pod requests its reason more often than that. */
#define ASKED_NS (8 * NSEC_PER_SEC)
#define NODES_LEAST 100 /* the rate limit counts at least this many nodes per explanation */

struct reason {
	char *uid;  /* owned; NULL if the entry is free */
	char *text; /* owned; NULL if not computed yet */
	uint64_t requested_ns, computed_ns;
	uint64_t generation; /* the model's `generation` at computed_ns */
};

struct reasons {
	struct reason reason[REASONS_MAX];
};

struct reasons *reasons_new(void)
{
	return calloc(1, sizeof(struct reasons));
}

static void drop(struct reason *r)
{
	free(r->uid);
	free(r->text);
	*r = (struct reason){ 0 };
}

struct reasons *reasons_free(struct reasons *r)
{
	for (size_t i = 0; r && i < REASONS_MAX; i++)
		drop(&r->reason[i]);
	free(r);
	return NULL;
}

const char *reasons_get(struct reasons *r, const struct model_pod *pod, uint64_t now_ns)
{
	struct reason *oldest = &r->reason[0];
	for (size_t i = 0; i < REASONS_MAX; i++) {
		struct reason *one = &r->reason[i];
		if (one->uid && !strcmp(one->uid, pod->text)) {
			one->requested_ns = now_ns;
			return one->text;
		}
		/* A free entry has requested_ns 0, so it counts as the oldest. */
		if (one->requested_ns < oldest->requested_ns)
			oldest = one;
	}
	drop(oldest);
	oldest->uid = strdup(pod->text);
	oldest->requested_ns = oldest->uid ? now_ns : 0;
	return NULL;
}

/* Returns the requested entry to compute next: one without a reason, or the one with the oldest outdated reason. */
static struct reason *next(struct reasons *r, const struct model *m, uint64_t now_ns)
{
	struct reason *found = NULL;
	for (size_t i = 0; i < REASONS_MAX; i++) {
		struct reason *one = &r->reason[i];
		bool is_good = one->computed_ns && (one->generation == m->generation ||
						    now_ns - one->computed_ns < REASONS_GOOD_NS);
		if (one->uid && now_ns - one->requested_ns < ASKED_NS && !is_good &&
		    (!found || one->computed_ns < found->computed_ns))
			found = one;
	}
	return found;
}

static bool compute_reason(struct reason *r, struct model *m, uint64_t now_ns)
{
	struct model_pod *pod = model_find_pod(m, r->uid);
	json_t *explanation = NULL;
	struct json_text t = { 0 };
	struct error err = { 0 };
	r->computed_ns = now_ns;
	r->generation = m->generation;
	if (!pod || explain_known(m, pod, NULL, &explanation, &err) < 0)
		return false;
	wait_summary_write(explanation, &t);
	json_decref(explanation);
	char *text = json_text_end(&t);
	bool is_other = text && (!r->text || strcmp(text, r->text) != 0);
	if (text) {
		free(r->text);
		r->text = text;
	}
	return is_other;
}

bool reasons_refresh(struct reasons *r, struct model *m, struct token_bucket *bucket, size_t nodes,
		     uint64_t now_ns)
{
	uint64_t begun_ns = clock_now_ns();
	bool is_other = false;
	struct reason *one;
	while ((one = next(r, m, now_ns)) && clock_now_ns() - begun_ns < REASONS_MOST_NS &&
	       !token_bucket_take(bucket, nodes < NODES_LEAST ? NODES_LEAST : nodes, now_ns))
		is_other |= compute_reason(one, m, now_ns);
	return is_other;
}
