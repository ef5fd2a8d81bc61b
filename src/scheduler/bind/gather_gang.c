#include "scheduler/bind/gather_gang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define TEXT_MAX 256

struct waiting {
	struct decision decision; /* owned */
	uint64_t asked_ns;
	bind_done done;
	void *data;
	TAILQ_ENTRY(waiting) link;
};

struct gather {
	struct gather_terms terms;
	TAILQ_HEAD(, waiting) waiting; /* in order of arrival */
	size_t count;
};

static struct waiting *drop(struct gather *g, struct waiting *w)
{
	TAILQ_REMOVE(&g->waiting, w, link);
	g->count--;
	decision_free(&w->decision);
	free(w);
	return NULL;
}

/* Removes the binding and calls its `done`, which may request another binding. */
static void report_result(struct gather *g, struct waiting *w, const struct error *err)
{
	const struct error why = *err;
	bind_done done = w->done;
	void *data = w->data;
	model_set_bind_waiting(g->terms.model, w->decision.uid, false);
	drop(g, w);
	done(data, &why);
}

static struct waiting *find(const struct gather *g, const char *uid)
{
	struct waiting *w;
	TAILQ_FOREACH(w, &g->waiting, link)
		if (!strcmp(w->decision.uid, uid))
			return w;
	return NULL;
}

static int add(struct gather *g, const struct decision *decision, uint64_t now_ns, bind_done done,
	       void *data)
{
	struct waiting *w = calloc(1, sizeof(*w));
	if (!w || decision_copy(decision, &w->decision) < 0) {
		free(w);
		return -ENOMEM;
	}
	w->asked_ns = now_ns;
	w->done = done;
	w->data = data;
	TAILQ_INSERT_TAIL(&g->waiting, w, link);
	g->count++;
	return 0;
}

static int start(struct gather *g, const struct decision *decision, bind_done done, void *data)
{
	model_binding_started(g->terms.model, decision->uid);
	int r = g->terms.start(g->terms.data, decision, done, data);
	if (r < 0)
		model_release(g->terms.model, decision->uid);
	return r;
}

/* True if `w` no longer waits. Then walk the list from its start, because callbacks may have removed other entries too. */
static bool start_if_permitted(struct gather *g, struct waiting *w)
{
	struct error err;
	if (model_bind_permit(g->terms.model, w->decision.uid) != MODEL_PERMIT_ALLOW)
		return false;
	int r = start(g, &w->decision, w->done, w->data);
	if (r >= 0) {
		drop(g, w);
		return true;
	}
	error_set_errno(&err, -r, "binding");
	report_result(g, w, &err);
	return true;
}

static void start_all(struct gather *g)
{
	struct waiting *w = TAILQ_FIRST(&g->waiting);
	while (w)
		w = start_if_permitted(g, w) ? TAILQ_FIRST(&g->waiting) : TAILQ_NEXT(w, link);
}

int gather_bind(struct gather *g, const struct decision *decision, uint64_t now_ns, bind_done done,
		void *data)
{
	struct error err;
	struct waiting *before = find(g, decision->uid);
	if (before) {
		error_set(
			&err, ECANCELED,
			"kube-scheduler sent a newer request to bind this pod, so this older request is dropped");
		report_result(g, before, &err);
	}
	model_set_bind_waiting(g->terms.model, decision->uid, true);
	const enum model_bind_permit turn = model_bind_permit(g->terms.model, decision->uid);
	if (turn == MODEL_PERMIT_WAIT) {
		int r = add(g, decision, now_ns, done, data);
		if (r < 0)
			model_set_bind_waiting(g->terms.model, decision->uid, false);
		return r;
	}
	if (turn == MODEL_PERMIT_UNRESERVED) {
		model_release(g->terms.model, decision->uid);
		return -EAGAIN;
	}
	int r = start(g, decision, done, data);
	if (g->count)
		start_all(g);
	return r;
}

static struct waiting *find_late(const struct gather *g, uint64_t now_ns)
{
	struct waiting *w;
	TAILQ_FOREACH(w, &g->waiting, link)
		if (now_ns - w->asked_ns >= g->terms.wait_ns ||
		    model_bind_permit(g->terms.model, w->decision.uid) == MODEL_PERMIT_UNRESERVED)
			return w;
	return NULL;
}

void gather_advance(struct gather *g, uint64_t now_ns)
{
	struct waiting *w;
	struct error err;
	char text[TEXT_MAX];
	/* The watch may have reported pods that are bound or need no GPU. They count for their gang without a bind call. */
	start_all(g);
	while ((w = find_late(g, now_ns))) {
		model_bind_permit_text(g->terms.model, w->decision.uid, text, sizeof(text));
		error_set(&err, EAGAIN, "pod %.63s/%.128s: %s", w->decision.pod_namespace,
			  w->decision.pod, text);
		report_result(g, w, &err);
	}
}

void gather_cancel(struct gather *g)
{
	struct waiting *w;
	struct error err;
	while ((w = TAILQ_FIRST(&g->waiting))) {
		error_set(&err, ECANCELED,
			  "pod %.63s/%.128s: not bound, since this replica of allot-scheduler no longer leads; "
			  "kube-scheduler tries again",
			  w->decision.pod_namespace, w->decision.pod);
		report_result(g, w, &err);
	}
}

int gather_new(const struct gather_terms *terms, struct gather **ret)
{
	struct gather *g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->terms = *terms;
	TAILQ_INIT(&g->waiting);
	*ret = g;
	return 0;
}

struct gather *gather_free(struct gather *g)
{
	if (!g)
		return NULL;
	while (!TAILQ_EMPTY(&g->waiting))
		drop(g, TAILQ_FIRST(&g->waiting));
	free(g);
	return NULL;
}

size_t gather_count(const struct gather *g)
{
	return g->count;
}
