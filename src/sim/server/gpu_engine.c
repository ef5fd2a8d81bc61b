/* The part of the time model (gpu_engine.h) that keeps cards and their time slices, and advances virtual time. */
#include "sim/server/gpu_engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/server/engine_internal.h"

/* Makes `bucket` the newest, unless a newer one exists. Empties all buckets after the previous newest one. */
static void roll(struct meter *m, uint64_t bucket)
{
	if (bucket <= m->last)
		return;
	if (bucket - m->last >= METER_BUCKETS) {
		memset(m->busy_ns, 0, sizeof(m->busy_ns));
		m->last = bucket;
		return;
	}
	while (m->last < bucket)
		m->busy_ns[++m->last % METER_BUCKETS] = 0;
}

/* Adds [from_ns, to_ns) as busy. */
static void meter_add(struct meter *m, uint64_t from_ns, uint64_t to_ns)
{
	while (from_ns < to_ns) {
		uint64_t bucket = from_ns / METER_BUCKET_NS;
		uint64_t end = (bucket + 1) * METER_BUCKET_NS;
		uint64_t until = to_ns < end ? to_ns : end;

		roll(m, bucket);
		if (bucket + METER_BUCKETS > m->last)
			m->busy_ns[bucket % METER_BUCKETS] += (uint32_t)(until - from_ns);
		from_ns = until;
	}
}

uint32_t meter_pct(const struct meter *m, uint64_t bucket)
{
	if (bucket > m->last || bucket + METER_BUCKETS <= m->last)
		return 0;
	/* Round up: NVML never reports 0 for a GPU that was busy at all. */
	return (uint32_t)((m->busy_ns[bucket % METER_BUCKETS] * 100ull + METER_BUCKET_NS - 1) /
			  METER_BUCKET_NS);
}

void engine_init(struct engine *e, uint64_t now_ns, struct engine_hooks hooks)
{
	memset(e, 0, sizeof(*e));
	e->now_ns = now_ns;
	e->hooks = hooks;
}

void engine_fini(struct engine *e)
{
	for (uint32_t i = 0; i < e->cards_n; i++)
		while (e->cards[i].procs)
			engine_proc_free(e, e->cards[i].procs);
	while (e->spare) {
		struct engine_op *op = e->spare;

		e->spare = op->next;
		free(op);
	}
}

struct engine_card *engine_add_card(struct engine *e, uint64_t slice_ns, uint64_t gap_ns,
				    uint64_t switch_ns)
{
	struct engine_card *card = &e->cards[e->cards_n++];

	assert(e->cards_n <= SIM_MAX_CARDS && slice_ns > 0);
	card->slice_ns = slice_ns;
	card->gap_ns = gap_ns;
	card->switch_ns = switch_ns;
	card->slice_left_ns = slice_ns;
	return card;
}

struct engine_proc *engine_proc_new(struct engine *e, struct engine_card *card, void *owner)
{
	struct engine_proc *proc = calloc(1, sizeof(*proc));
	struct engine_proc **at;

	if (!proc)
		return NULL;
	proc->card = card;
	proc->owner = owner;
	proc->limit = ENGINE_ALL;
	for (at = &card->procs; *at; at = &(*at)->next)
		;
	*at = proc;
	return proc;
}

static bool run_together(const struct engine_proc *a, const struct engine_proc *b)
{
	return a == b || (a && b && a->group && a->group == b->group);
}

/* `done` nanoseconds of work take `in` nanoseconds. */
struct rate {
	uint64_t done, in;
};

static uint64_t wanted_of(const struct engine_card *card)
{
	uint64_t wanted = 0;

	for (const struct engine_proc *p = card->procs; p; p = p->next)
		if (p->runnable && run_together(p, card->current))
			wanted += p->wanted < p->limit ? p->wanted : p->limit;
	return wanted;
}

static struct rate rate_of(const struct engine_proc *p, uint64_t wanted)
{
	struct rate rate = { 1, 1 };

	if (p->wanted > p->limit)
		rate = (struct rate){ p->limit, p->wanted };
	if (wanted > ENGINE_ALL) {
		rate.done *= ENGINE_ALL;
		rate.in *= wanted;
	}
	return rate;
}

static bool is_slowed(struct rate rate)
{
	return rate.done < rate.in;
}

/* Converts progress below 1 ns (op->remainder) to units of 1/in ns. Rounds down, so that no work ends early. */
static uint64_t scale_remainder(const struct engine_op *op, uint64_t in)
{
	if (!op->remainder || op->remainder_base == in)
		return op->remainder;
	return (uint64_t)((unsigned __int128)op->remainder * in / op->remainder_base);
}

static uint64_t time_to_finish(const struct engine_op *op, struct rate rate)
{
	unsigned __int128 ns;

	if (!is_slowed(rate) || !op->left_ns)
		return op->left_ns;
	ns = (unsigned __int128)op->left_ns * rate.in - scale_remainder(op, rate.in);
	ns = (ns + rate.done - 1) / rate.done;
	return ns < INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

/* Runs the work for `ns` at the rate. Returns how many ns of the work were done. */
static uint64_t run_work(struct engine_op *op, uint64_t ns, struct rate rate)
{
	uint64_t done = ns;

	if (is_slowed(rate)) {
		unsigned __int128 whole = (unsigned __int128)ns * rate.done +
					  scale_remainder(op, rate.in);

		done = (uint64_t)(whole / rate.in);
		op->remainder = (uint64_t)(whole % rate.in);
		op->remainder_base = rate.in;
	}
	if (done > op->left_ns)
		done = op->left_ns;
	op->left_ns -= done;
	return done;
}

/* True if a process waits for the end of the slice, because it cannot run at the same time as the current one. */
static bool is_contended(const struct engine_card *card)
{
	if (!card->current->group)
		return card->runnable_n > 1;
	for (const struct engine_proc *p = card->procs; p; p = p->next)
		if (p->runnable && !run_together(p, card->current))
			return true;
	return false;
}

/* Returns the next process after `after` with work, in a ring that ends with `after` itself. NULL if there is none. */
static struct engine_proc *next_runnable(struct engine_card *card, struct engine_proc *after)
{
	struct engine_proc *p = after;

	if (!card->runnable_n)
		return NULL;
	for (;;) {
		p = p && p->next ? p->next : card->procs;
		if (p->runnable)
			return p;
		if (p == after)
			return NULL;
	}
}

void engine_reschedule(struct engine_card *card)
{
	struct engine_proc *cur = card->current;

	if (cur && cur->runnable)
		return;
	/* Another process of the group continues the slice. */
	for (struct engine_proc *p = card->procs; cur && p; p = p->next)
		if (p->runnable && run_together(p, cur)) {
			card->current = p;
			return;
		}
	cur = next_runnable(card, cur);
	if (!cur)
		return;
	if (card->loaded && !run_together(card->loaded, cur))
		card->gap_left_ns = card->switch_ns;
	card->loaded = cur;
	card->current = cur;
	card->slice_left_ns = card->slice_ns;
}

void engine_proc_free(struct engine *e, struct engine_proc *proc)
{
	struct engine_card *card = proc->card;
	struct engine_proc **at;

	if (card->loaded == proc) {
		card->loaded = NULL;
		card->gap_left_ns = 0;
	}
	while (proc->streams) {
		for (struct engine_op *op = proc->streams->head; op; op = op->next)
			op->notify = false;
		engine_stream_kill(e, proc->streams);
	}
	for (at = &card->procs; *at != proc; at = &(*at)->next)
		;
	*at = proc->next;
	if (card->current == proc) {
		card->current = NULL;
		engine_reschedule(card);
	}
	free(proc);
	engine_run_untimed(e);
}

void engine_card_fail(struct engine *e, struct engine_card *card)
{
	for (struct engine_proc *p = card->procs; p; p = p->next) {
		for (struct engine_stream *s = p->streams; s; s = s->next)
			while (s->head)
				engine_pop(e, s, true);
		engine_run_untimed_proc(e, p);
	}
	engine_run_untimed(e);
}

/* Returns the time until the first running work is done. */
static uint64_t first_end(const struct engine_card *card)
{
	uint64_t wanted = wanted_of(card), least = ENGINE_NEVER;

	for (const struct engine_proc *p = card->procs; p; p = p->next) {
		struct rate rate = rate_of(p, wanted);

		if (!p->running || !run_together(p, card->current))
			continue;
		for (const struct engine_stream *s = p->streams; s; s = s->next) {
			uint64_t ns = s->runs ? time_to_finish(s->head, rate) : ENGINE_NEVER;

			if (ns < least)
				least = ns;
		}
	}
	return least;
}

/* Returns when the card's state next changes if nothing is submitted. */
static uint64_t card_next(const struct engine *e, const struct engine_card *card)
{
	const struct engine_proc *cur = card->current;

	if (!cur || !cur->runnable)
		return ENGINE_NEVER;
	if (card->gap_left_ns)
		return e->now_ns + card->gap_left_ns;
	uint64_t ns = first_end(card);
	if (is_contended(card) && card->slice_left_ns < ns)
		ns = card->slice_left_ns;
	return ns == ENGINE_NEVER ? ENGINE_NEVER : e->now_ns + ns;
}

static uint64_t engine_next_change(const struct engine *e)
{
	uint64_t next = ENGINE_NEVER;

	for (uint32_t i = 0; i < e->cards_n; i++) {
		uint64_t t = card_next(e, &e->cards[i]);

		if (t < next)
			next = t;
	}
	return next;
}

static void proc_run(struct engine *e, struct engine_proc *p, uint64_t ns, struct rate rate)
{
	for (struct engine_stream *s = p->streams; s; s = s->next)
		if (s->runs)
			s->done_ns += run_work(s->head, ns, rate);
	p->busy_ns += ns;
	meter_add(&p->meter, e->now_ns, e->now_ns + ns);
}

/* Runs the card for ns, during which nothing changes. */
static void card_run(struct engine *e, struct engine_card *card, uint64_t ns)
{
	struct engine_proc *cur = card->current;

	if (!ns || !cur || !cur->runnable)
		return;
	if (card->gap_left_ns) {
		card->gap_left_ns -= ns;
		return;
	}
	uint64_t wanted = wanted_of(card);
	for (struct engine_proc *p = card->procs; p; p = p->next)
		if (p->runnable && run_together(p, cur))
			proc_run(e, p, ns, rate_of(p, wanted));
	if (is_contended(card))
		card->slice_left_ns -= ns;
	else
		card->slice_left_ns = card->slice_ns;
	card->busy_ns += ns;
	meter_add(&card->meter, e->now_ns, e->now_ns + ns);
}

/* Removes a process's finished work. True if there was any. */
static bool pop_finished(struct engine *e, struct engine_proc *p)
{
	bool any = false;

	for (struct engine_stream *s = p->streams; s; s = s->next)
		if (s->runs && !s->head->left_ns) {
			engine_pop(e, s, false);
			any = true;
		}
	return any;
}

/* Removes finished work, and gives the card to the next process if the slice is over. */
static void card_switch(struct engine *e, struct engine_card *card)
{
	struct engine_proc *cur = card->current, *next;

	if (!cur || card->gap_left_ns)
		return;
	for (struct engine_proc *p = card->procs; p; p = p->next)
		if (run_together(p, cur) && p->runnable && pop_finished(e, p))
			engine_run_untimed_proc(e, p);
	cur = card->current;
	if (!cur || !cur->runnable || !is_contended(card) || card->slice_left_ns)
		return;
	next = cur;
	do
		next = next_runnable(card, next);
	while (next != cur && run_together(next, cur));
	card->slice_left_ns = card->slice_ns;
	if (next && next != cur) {
		card->current = card->loaded = next;
		card->gap_left_ns = card->gap_ns;
	}
}

void engine_advance(struct engine *e, uint64_t t_ns)
{
	while (t_ns >= e->now_ns) {
		uint64_t next = engine_next_change(e);
		uint64_t until = next < t_ns ? next : t_ns;

		for (uint32_t i = 0; i < e->cards_n; i++)
			card_run(e, &e->cards[i], until - e->now_ns);
		e->now_ns = until;
		if (next > t_ns)
			return;
		for (uint32_t i = 0; i < e->cards_n; i++)
			card_switch(e, &e->cards[i]);
		engine_run_untimed(e);
	}
}

/* Returns a lower bound on when stream s has done its work up to cum_ns (struct engine_op). */
static uint64_t completion_bound(const struct engine *e, const struct engine_stream *s,
				 uint64_t cum_ns)
{
	return e->now_ns + (cum_ns > s->done_ns ? cum_ns - s->done_ns : 0);
}

/* As completion_bound(), but not before `change`, the engine's next change. ENGINE_NEVER while s waits for the host. */
static uint64_t next_completion(const struct engine *e, const struct engine_stream *s,
				uint64_t cum_ns, uint64_t change)
{
	uint64_t t = completion_bound(e, s, cum_ns);

	if (s->head && (s->head->kind == ENGINE_HOST || s->head->kind == ENGINE_SPIN) &&
	    s->head->started)
		return ENGINE_NEVER;
	return t > change ? t : change;
}

uint64_t engine_next_notice(const struct engine *e)
{
	uint64_t next = ENGINE_NEVER;
	uint64_t change = engine_next_change(e);

	if (change == ENGINE_NEVER)
		return ENGINE_NEVER;
	for (uint32_t i = 0; i < e->cards_n; i++)
		for (const struct engine_proc *p = e->cards[i].procs; p; p = p->next)
			for (const struct engine_stream *s = p->streams; s; s = s->next) {
				uint64_t t;

				if (!s->notices)
					continue;
				t = next_completion(e, s, s->notices->cum_ns, change);
				if (t < next)
					next = t;
			}
	return next;
}

uint64_t engine_next_event(const struct engine *e, const struct engine_event *ev)
{
	uint64_t change = engine_next_change(e);

	if (!ev->stream || change == ENGINE_NEVER)
		return ENGINE_NEVER;
	return next_completion(e, ev->stream, ev->cum_ns, change);
}

uint64_t engine_next_completion(const struct engine *e, const struct engine_proc *proc)
{
	uint64_t change = engine_next_change(e);
	uint64_t least = ENGINE_NEVER;

	if (change == ENGINE_NEVER)
		return ENGINE_NEVER;
	for (const struct engine_stream *s = proc->streams; s; s = s->next) {
		if (s->runs && s->head->left_ns < least)
			least = s->head->left_ns;
		/* No later bound holds: the awaited event may happen at `change`, and the work behind it may end at once. */
		if (s->head && s->head->kind == ENGINE_AWAIT)
			return change;
	}
	if (least == ENGINE_NEVER)
		return change;
	return e->now_ns + least > change ? e->now_ns + least : change;
}

uint64_t engine_stream_bound(const struct engine *e, const struct engine_stream *s)
{
	return completion_bound(e, s, s->cum_ns);
}

uint64_t engine_event_bound(const struct engine *e, const struct engine_event *ev)
{
	return ev->stream ? completion_bound(e, ev->stream, ev->cum_ns) : e->now_ns;
}
