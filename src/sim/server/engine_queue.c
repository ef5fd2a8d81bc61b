/* The part of the time model (gpu_engine.h) that keeps streams, their queues, and events. */
#include <stdlib.h>

#include "sim/server/gpu_engine.h"
#include "sim/server/engine_internal.h"

static struct engine_op *op_new(struct engine *e, enum engine_op_kind kind)
{
	struct engine_op *op = e->spare;

	if (op)
		e->spare = op->next;
	else
		op = malloc(sizeof(*op));
	if (op)
		*op = (struct engine_op){ .kind = kind };
	return op;
}

static void event_unref(struct engine *e, struct engine_event *ev)
{
	if (--ev->awaits == 0 && ev->orphan)
		e->hooks.event_done(e->hooks.arg, ev);
}

static void complete_event(struct engine *e, struct engine_event *ev, uint64_t no)
{
	if (no <= ev->completed)
		return;
	ev->completed = no;
	ev->completed_at_ns = e->now_ns;
	if (engine_event_is_done(ev))
		ev->stream = NULL;
	e->dirty = true;
	if (ev->watched && engine_event_is_done(ev))
		e->hooks.event_done(e->hooks.arg, ev);
}

void engine_pop(struct engine *e, struct engine_stream *s, bool failed)
{
	struct engine_op *op = s->head;
	bool tell_end = op->kind != ENGINE_HOST && op->kind != ENGINE_SPIN;

	s->runs = false;
	s->head = op->next;
	if (!s->head)
		s->tail = NULL;
	if (s->notices == op) {
		s->notices = op->next_notice;
		if (!s->notices)
			s->notices_tail = NULL;
	}
	s->done_ns += op->left_ns;
	if (op->kind == ENGINE_SPIN && op->started)
		s->proc->spinning--;
	s->proc->completed += op->launches;
	if (op->kind == ENGINE_RECORD)
		complete_event(e, op->event, op->event_no);
	/* Drop the op's reference after complete_event(), because it may be the event's last one. */
	if (op->event)
		event_unref(e, op->event);
	if (op->notify && tell_end)
		e->hooks.op_notice(e->hooks.arg, s, op, failed);
	op->next = e->spare;
	e->spare = op;
}

/* The legacy stream and the blocking streams of a context wait for each other's older work. */
static bool is_blocked(const struct engine_stream *s)
{
	const struct engine_stream *o;

	if (s->flags & SIM_STREAM_NONBLOCKING)
		return false;
	for (o = s->proc->streams; o; o = o->next)
		if (o != s && o->head && o->context == s->context &&
		    !(o->flags & SIM_STREAM_NONBLOCKING) &&
		    ((o->flags | s->flags) & SIM_STREAM_LEGACY) && o->head->seq < s->head->seq)
			return true;
	return false;
}

/* Completes ops at the head of s that take no time, until one takes time or must wait. True if it completed any. */
static bool settle_stream(struct engine *e, struct engine_stream *s)
{
	bool moved = false;

	for (; s->head && !is_blocked(s); moved = true) {
		struct engine_op *op = s->head;

		switch (op->kind) {
		case ENGINE_WORK: return moved;
		case ENGINE_AWAIT:
			if (op->event->completed < op->event_no)
				return moved;
			break;
		case ENGINE_HOST:
		case ENGINE_SPIN:
			if (!op->started) {
				op->started = true;
				if (op->kind == ENGINE_SPIN)
					s->proc->spinning++;
				e->hooks.op_notice(e->hooks.arg, s, op, false);
			}
			if (!op->released)
				return moved;
			break;
		case ENGINE_MARK:
		case ENGINE_RECORD: break;
		}
		engine_pop(e, s, false);
	}
	return moved;
}

static void stream_free(struct engine_stream *s)
{
	struct engine_stream **at = &s->proc->streams;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free(s);
}

static void start(struct engine_proc *proc, struct engine_stream *s)
{
	s->runs = s->head->started = true;
	proc->running++;
	proc->wanted += s->head->part;
	if (s->head->way != SIM_WAY_NONE)
		proc->ways |= 1u << s->head->way;
}

static struct engine_stream *next_to_start(const struct engine_proc *proc)
{
	struct engine_stream *oldest = NULL;

	for (struct engine_stream *s = proc->streams; s; s = s->next)
		if (s->head && s->head->kind == ENGINE_WORK && !s->runs &&
		    !(proc->ways >> s->head->way & 1) &&
		    (!oldest || s->head->seq < oldest->head->seq) && !is_blocked(s))
			oldest = s;
	return oldest;
}

/* Chooses the work that runs now: first the work that has begun, then the oldest, ENGINE_AT_ONCE pieces at most. */
static void choose(struct engine_proc *proc)
{
	struct engine_stream *s;

	proc->running = proc->ways = 0;
	proc->wanted = 0;
	for (s = proc->streams; s; s = s->next) {
		s->runs = false;
		if (s->head && s->head->kind == ENGINE_WORK && s->head->started)
			start(proc, s);
	}
	while (proc->running < ENGINE_AT_ONCE && (s = next_to_start(proc)))
		start(proc, s);
}

void engine_run_untimed_proc(struct engine *e, struct engine_proc *proc)
{
	struct engine_stream *s, *next;
	bool again;

	do {
		again = false;
		for (s = proc->streams; s; s = s->next)
			again |= s->head && settle_stream(e, s);
	} while (again);

	for (s = proc->streams; s; s = next) {
		next = s->next;
		if (!s->head && s->closed)
			stream_free(s);
	}
	choose(proc);
	bool runnable = proc->running || proc->spinning;
	if (runnable != proc->runnable) {
		proc->runnable = runnable;
		proc->card->runnable_n += runnable ? 1 : -1;
	}
	engine_reschedule(proc->card);
}

void engine_run_untimed(struct engine *e)
{
	while (e->dirty) {
		e->dirty = false;
		for (uint32_t i = 0; i < e->cards_n; i++)
			for (struct engine_proc *p = e->cards[i].procs; p; p = p->next)
				engine_run_untimed_proc(e, p);
	}
}

struct engine_stream *engine_stream_new(struct engine_proc *proc, uint64_t context, uint32_t flags)
{
	struct engine_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->proc = proc;
	s->context = context;
	s->flags = flags;
	s->next = proc->streams;
	proc->streams = s;
	return s;
}

void engine_stream_close(struct engine *e, struct engine_stream *s)
{
	s->closed = true;
	if (!s->head)
		stream_free(s);
}

void engine_stream_kill(struct engine *e, struct engine_stream *s)
{
	struct engine_proc *proc = s->proc;

	while (s->head)
		engine_pop(e, s, true);
	stream_free(s);
	engine_run_untimed_proc(e, proc);
	engine_run_untimed(e);
}

static void append(struct engine *e, struct engine_stream *s, struct engine_op *op)
{
	bool was_empty = !s->head;

	op->seq = ++e->seq;
	s->cum_ns += op->left_ns;
	op->cum_ns = s->cum_ns;
	s->proc->submitted += op->launches;
	if (s->tail)
		s->tail->next = op;
	else
		s->head = op;
	s->tail = op;
	if (op->notify) {
		if (s->notices_tail)
			s->notices_tail->next_notice = op;
		else
			s->notices = op;
		s->notices_tail = op;
	}
	if (was_empty) {
		engine_run_untimed_proc(e, s->proc);
		engine_run_untimed(e);
	}
}

bool engine_work(struct engine *e, struct engine_stream *s, uint64_t ns, uint32_t launches,
		 uint32_t part, enum sim_way way)
{
	struct engine_op *op = op_new(e, ENGINE_WORK);

	if (!op)
		return false;
	op->left_ns = ns;
	op->launches = launches;
	op->part = part < 1 ? 1 : part > ENGINE_ALL ? ENGINE_ALL : part;
	op->way = way;
	append(e, s, op);
	return true;
}

bool engine_mark(struct engine *e, struct engine_stream *s, uint64_t cookie)
{
	struct engine_op *op = op_new(e, ENGINE_MARK);

	if (!op)
		return false;
	op->notify = true;
	op->cookie = cookie;
	append(e, s, op);
	return true;
}

bool engine_record(struct engine *e, struct engine_stream *s, struct engine_event *event)
{
	struct engine_op *op = op_new(e, ENGINE_RECORD);

	if (!op)
		return false;
	op->event = event;
	op->event_no = ++event->recorded;
	event->awaits++;
	event->stream = s;
	event->cum_ns = s->cum_ns;
	append(e, s, op);
	return true;
}

bool engine_await(struct engine *e, struct engine_stream *s, struct engine_event *event)
{
	struct engine_op *op = op_new(e, ENGINE_AWAIT);

	if (!op)
		return false;
	op->event = event;
	op->event_no = event->recorded;
	event->awaits++;
	append(e, s, op);
	return true;
}

bool engine_host(struct engine *e, struct engine_stream *s, enum engine_op_kind kind,
		 uint64_t cookie)
{
	struct engine_op *op = op_new(e, kind);

	if (!op)
		return false;
	op->notify = true;
	op->launches = kind == ENGINE_SPIN;
	op->cookie = cookie;
	append(e, s, op);
	return true;
}

bool engine_release(struct engine *e, struct engine_proc *proc, uint64_t cookie)
{
	for (struct engine_stream *s = proc->streams; s; s = s->next) {
		struct engine_op *op = s->head;

		if (op && (op->kind == ENGINE_HOST || op->kind == ENGINE_SPIN) &&
		    op->cookie == cookie) {
			op->released = true;
			engine_run_untimed_proc(e, proc);
			engine_run_untimed(e);
			return true;
		}
	}
	return false;
}

bool engine_event_drop(struct engine *e, struct engine_event *event)
{
	event->watched = false;
	event->orphan = true;
	return event->awaits == 0;
}
