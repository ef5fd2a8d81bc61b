/* The time model: cards, slices and the order of virtual time. See engine.h. */
#include "sim/server/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/server/engine_internal.h"

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
	for (at = &card->procs; *at; at = &(*at)->next)
		;
	*at = proc;
	return proc;
}

/* Whether both run at the same time. */
static bool are_one(const struct engine_proc *a, const struct engine_proc *b)
{
	return a == b || (a && b && a->group && a->group == b->group);
}

/* How fast the card's present work goes: 1, but where a group wants more SMs than there are. */
static double speed(const struct engine_card *card)
{
	uint64_t wanted = 0;

	if (!card->current->group)
		return 1;
	for (const struct engine_proc *p = card->procs; p; p = p->next)
		if (p->runnable && p->pick && are_one(p, card->current))
			wanted += p->pick->head->part;
	return wanted > ENGINE_ALL ? (double)ENGINE_ALL / (double)wanted : 1;
}

/* Whether somebody waits for the end of the slice. */
static bool is_shared(const struct engine_card *card)
{
	if (!card->current->group)
		return card->runnable_n > 1;
	for (const struct engine_proc *p = card->procs; p; p = p->next)
		if (p->runnable && !are_one(p, card->current))
			return true;
	return false;
}

/* The next process in the ring after `after` that has work; NULL when there is none but it. */
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
	/* Another of its group goes on with the slice. */
	for (struct engine_proc *p = card->procs; cur && p; p = p->next)
		if (p->runnable && are_one(p, cur)) {
			card->current = p;
			return;
		}
	cur = next_runnable(card, cur);
	if (!cur)
		return;
	if (card->loaded && !are_one(card->loaded, cur))
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
	engine_settle(e);
}

void engine_card_fail(struct engine *e, struct engine_card *card)
{
	for (struct engine_proc *p = card->procs; p; p = p->next) {
		for (struct engine_stream *s = p->streams; s; s = s->next)
			while (s->head)
				engine_pop(e, s, true);
		engine_settle_proc(e, p);
	}
	engine_settle(e);
}

/* How long until the first piece of the group that runs is done. */
static uint64_t group_next(const struct engine_card *card)
{
	double rate = speed(card);
	uint64_t least = ENGINE_NEVER;

	for (const struct engine_proc *p = card->procs; p; p = p->next) {
		double exact;
		uint64_t ns;

		if (!p->runnable || !p->pick || !are_one(p, card->current))
			continue;
		exact = ((double)p->pick->head->left_ns - p->rest_ns) / rate;
		ns = (uint64_t)exact;
		ns += (double)ns < exact;
		if (ns < least)
			least = ns;
	}
	return least;
}

/* When something changes on this card if nothing is submitted. */
static uint64_t card_next(const struct engine *e, const struct engine_card *card)
{
	const struct engine_proc *cur = card->current;
	uint64_t ns = ENGINE_NEVER;

	if (!cur || !cur->runnable)
		return ENGINE_NEVER;
	if (card->gap_left_ns)
		return e->now_ns + card->gap_left_ns;
	if (!cur->group)
		ns = cur->pick ? cur->pick->head->left_ns : ENGINE_NEVER;
	else
		ns = group_next(card);
	if (is_shared(card) && card->slice_left_ns < ns)
		ns = card->slice_left_ns;
	return ns == ENGINE_NEVER ? ENGINE_NEVER : e->now_ns + ns;
}

uint64_t engine_next_change(const struct engine *e)
{
	uint64_t next = ENGINE_NEVER;

	for (uint32_t i = 0; i < e->cards_n; i++) {
		uint64_t t = card_next(e, &e->cards[i]);

		if (t < next)
			next = t;
	}
	return next;
}

/* So much of a process's present piece is done. */
static void proc_run(struct engine *e, struct engine_proc *p, uint64_t ns, double rate)
{
	if (p->pick) {
		struct engine_op *op = p->pick->head;
		uint64_t done = ns;

		if (rate < 1) {
			double whole = (double)ns * rate + p->rest_ns;

			done = (uint64_t)(whole + 1e-6);
			p->rest_ns = whole > (double)done ? whole - (double)done : 0;
		}
		if (done >= op->left_ns) {
			done = op->left_ns;
			p->rest_ns = 0;
		}
		op->left_ns -= done;
		p->pick->done_ns += done;
	}
	p->busy_ns += ns;
	meter_add(&p->meter, e->now_ns, e->now_ns + ns);
}

/* The card does what it does for ns, within which nothing changes. */
static void card_run(struct engine *e, struct engine_card *card, uint64_t ns)
{
	struct engine_proc *cur = card->current;
	double rate;

	if (!ns || !cur || !cur->runnable)
		return;
	if (card->gap_left_ns) {
		card->gap_left_ns -= ns;
		return;
	}
	rate = speed(card);
	for (struct engine_proc *p = card->procs; p; p = p->next)
		if (p->runnable && are_one(p, cur))
			proc_run(e, p, ns, rate);
	if (is_shared(card))
		card->slice_left_ns -= ns;
	else
		card->slice_left_ns = card->slice_ns;
	card->busy_ns += ns;
	meter_add(&card->meter, e->now_ns, e->now_ns + ns);
}

/* Work that has run out is over; a slice that has run out passes on. */
static void card_turn(struct engine *e, struct engine_card *card)
{
	struct engine_proc *cur = card->current, *next;

	if (!cur || card->gap_left_ns)
		return;
	for (struct engine_proc *p = card->procs; p; p = p->next)
		if (are_one(p, cur) && p->runnable && p->pick && p->pick->head->left_ns == 0) {
			engine_pop(e, p->pick, false);
			engine_settle_proc(e, p);
		}
	cur = card->current;
	if (!cur || !cur->runnable || !is_shared(card) || card->slice_left_ns)
		return;
	next = cur;
	do
		next = next_runnable(card, next);
	while (next != cur && are_one(next, cur));
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
			card_turn(e, &e->cards[i]);
		engine_settle(e);
	}
}

/* When the work up to cum_ns of s can be done at the earliest. */
static uint64_t bound(const struct engine *e, const struct engine_stream *s, uint64_t cum_ns)
{
	return e->now_ns + (cum_ns > s->done_ns ? cum_ns - s->done_ns : 0);
}

/* The same, but NEVER while the host must act first, and never before anything changes. */
static uint64_t next_of(const struct engine *e, const struct engine_stream *s, uint64_t cum_ns,
			uint64_t change)
{
	uint64_t t = bound(e, s, cum_ns);

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
				t = next_of(e, s, s->notices->cum_ns, change);
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
	return next_of(e, ev->stream, ev->cum_ns, change);
}

uint64_t engine_next_completion(const struct engine *e, const struct engine_proc *proc)
{
	uint64_t change = engine_next_change(e);
	uint64_t t;

	if (!proc->pick || change == ENGINE_NEVER)
		return proc->pick ? ENGINE_NEVER : change;
	t = e->now_ns + proc->pick->head->left_ns;
	return t > change ? t : change;
}

uint64_t engine_stream_bound(const struct engine *e, const struct engine_stream *s)
{
	return bound(e, s, s->cum_ns);
}

uint64_t engine_event_bound(const struct engine *e, const struct engine_event *ev)
{
	return ev->stream ? bound(e, ev->stream, ev->cum_ns) : e->now_ns;
}
