/* The clients' streams, work and events: turns requests into calls of the engine. */
#include <stdlib.h>
#include <string.h>

#include "sim/server/server.h"

#define MAX_ID (1u << 20)
/* A launch that found the queue full waits until this many places are free. */
#define ROOM_STEP 16

static bool map_set(struct id_map *map, uint32_t id, void *item)
{
	if (id >= map->size) {
		uint32_t size = map->size ? map->size * 2 : 64;
		void **items;

		if (id >= MAX_ID)
			return false;
		while (size <= id)
			size *= 2;
		items = realloc(map->items, size * sizeof(*items));
		if (!items)
			return false;
		memset(items + map->size, 0, (size - map->size) * sizeof(*items));
		map->items = items;
		map->size = size;
	}
	map->items[id] = item;
	return true;
}

static void *map_get(const struct id_map *map, uint64_t id)
{
	return id < map->size ? map->items[id] : NULL;
}

static bool is_lost(const struct server *s, const struct client *c, uint32_t card)
{
	return (s->lost | c->broken) >> card & 1;
}

static struct engine_proc *proc_of(struct server *s, struct client *c, uint32_t card)
{
	if (!c->procs[card]) {
		c->procs[card] = engine_proc_new(&s->engine, &s->engine.cards[card], c);
		if (c->procs[card])
			engine_proc_set_group(c->procs[card], c->group);
	}
	return c->procs[card];
}

uint64_t work_completed(const struct client *c)
{
	uint64_t n = c->completed_before;

	for (int i = 0; i < SIM_MAX_CARDS; i++)
		n += c->procs[i] ? c->procs[i]->completed : 0;
	return n;
}

static uint64_t in_flight(const struct client *c)
{
	uint64_t n = 0;

	for (int i = 0; i < SIM_MAX_CARDS; i++)
		n += c->procs[i] ? c->procs[i]->submitted - c->procs[i]->completed : 0;
	return n;
}

void work_check_room(struct server *s)
{
	for (struct client *c = s->clients; c; c = c->next)
		if (c->room_req && in_flight(c) <= SIM_LAUNCH_QUEUE - ROOM_STEP) {
			server_reply(s, c, c->room_req, SIM_OK, NULL, NULL, 0);
			c->room_req = 0;
		}
}

uint64_t work_next_due(const struct server *s)
{
	uint64_t due = engine_next_notice(&s->engine), t;

	for (const struct event *ev = s->watched_events; ev; ev = ev->next_watched) {
		t = engine_next_event(&s->engine, &ev->engine);
		due = t < due ? t : due;
	}
	for (const struct client *c = s->clients; c; c = c->next)
		for (int i = 0; c->room_req && i < SIM_MAX_CARDS; i++)
			if (c->procs[i]) {
				t = engine_next_completion(&s->engine, c->procs[i]);
				due = t < due ? t : due;
			}
	return due;
}

static struct waiter *waiter_new(struct client *c, uint32_t req)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->client = c;
	w->req = req;
	w->next = c->waiters;
	if (w->next)
		w->next->prev = w;
	c->waiters = w;
	return w;
}

static void waiter_done(struct server *s, struct waiter *w, const uint64_t val[5])
{
	server_reply(s, w->client, w->req, w->failed ? SIM_CARD_LOST : SIM_OK, val, NULL, 0);
	if (w->prev)
		w->prev->next = w->next;
	else
		w->client->waiters = w->next;
	if (w->next)
		w->next->prev = w->prev;
	free(w);
}

void work_op_notice(void *arg, struct engine_stream *stream, struct engine_op *op, bool failed)
{
	struct server *s = arg;
	struct client *c = stream->proc->owner;

	if (op->kind == ENGINE_HOST || op->kind == ENGINE_SPIN) {
		server_note(s, c, SIM_NOTE_HOST, op->cookie, 0);
		return;
	}
	struct waiter *w = (struct waiter *)(uintptr_t)op->cookie;
	w->failed |= failed && is_lost(s, c, (uint32_t)(stream->proc->card - s->engine.cards));
	if (--w->left == 0)
		waiter_done(s, w, NULL);
}

static void event_free(struct server *s, struct event *ev)
{
	struct event **at;

	for (at = &s->named_events; ev->name && *at; at = &(*at)->next_named)
		if (*at == ev) {
			*at = ev->next_named;
			break;
		}
	free(ev);
}

static void event_unwatch(struct server *s, struct event *ev)
{
	struct event **at;

	for (at = &s->watched_events; *at && *at != ev; at = &(*at)->next_watched)
		;
	if (*at)
		*at = ev->next_watched;
	ev->engine.watched = false;
}

static void event_answer(struct server *s, struct event *ev)
{
	struct waiter *w = ev->waiters, *next;

	ev->waiters = NULL;
	event_unwatch(s, ev);
	for (; w; w = next) {
		next = w->next;
		if (w->client)
			server_reply(s, w->client, w->req, SIM_OK,
				     (uint64_t[5]){ 1, ev->engine.completed_at_ns }, NULL, 0);
		free(w);
	}
}

void work_event_done(void *arg, struct engine_event *engine_event)
{
	struct server *s = arg;
	struct event *ev = (struct event *)engine_event;

	if (engine_event->orphan)
		event_free(s, ev);
	else
		event_answer(s, ev);
}

static void event_release(struct server *s, struct event *ev)
{
	if (--ev->holds)
		return;
	event_answer(s, ev);
	if (engine_event_drop(&s->engine, &ev->engine))
		event_free(s, ev);
}

static void event_name(struct server *s, struct client *c, const struct sim_request_msg *m,
		       struct event *ev)
{
	if (!ev->name) {
		ev->name = ++s->names;
		ev->next_named = s->named_events;
		s->named_events = ev;
	}
	server_reply(s, c, m->req, SIM_OK, (uint64_t[5]){ ev->name }, NULL, 0);
}

static void event_open(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct event *ev = s->named_events;

	while (ev && ev->name != m->arg[0])
		ev = ev->next_named;
	if (!ev || !map_set(&c->events, m->id, ev)) {
		server_reply(s, c, m->req, SIM_INVALID, NULL, NULL, 0);
		return;
	}
	ev->holds++;
	server_reply(s, c, m->req, SIM_OK, NULL, NULL, 0);
}

static void event_sync(struct server *s, struct client *c, const struct sim_request_msg *m,
		       struct event *ev)
{
	struct waiter *w;

	if (engine_event_is_done(&ev->engine) || !(w = calloc(1, sizeof(*w)))) {
		server_reply(s, c, m->req, SIM_OK, (uint64_t[5]){ 1, ev->engine.completed_at_ns },
			     NULL, 0);
		return;
	}
	w->client = c;
	w->req = m->req;
	w->next = ev->waiters;
	ev->waiters = w;
	if (!ev->engine.watched) {
		ev->engine.watched = true;
		ev->next_watched = s->watched_events;
		s->watched_events = ev;
	}
}

static bool event_handle(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct event *ev = map_get(&c->events, m->id);
	struct engine_stream *stream = NULL;
	bool done;

	if (m->type < SIM_EVENT_NEW || m->type > SIM_EVENT_OPEN)
		return false;
	if (m->type == SIM_EVENT_NEW) {
		ev = calloc(1, sizeof(*ev));
		if (ev && map_set(&c->events, m->id, ev))
			ev->holds = 1;
		else
			free(ev);
		return true;
	}
	if (m->type == SIM_EVENT_OPEN) {
		event_open(s, c, m);
		return true;
	}
	if (!ev) {
		server_reply(s, c, m->req, SIM_BAD_HANDLE, NULL, NULL, 0);
		return true;
	}
	if (m->type == SIM_EVENT_RECORD || m->type == SIM_EVENT_AWAIT)
		stream = map_get(&c->streams, m->arg[0]);
	switch (m->type) {
	case SIM_EVENT_FREE:
		map_set(&c->events, m->id, NULL);
		event_release(s, ev);
		break;
	case SIM_EVENT_RECORD:
		if (stream && !is_lost(s, c, m->card))
			engine_record(&s->engine, stream, &ev->engine);
		break;
	case SIM_EVENT_AWAIT:
		if (stream && !is_lost(s, c, m->card))
			engine_await(&s->engine, stream, &ev->engine);
		break;
	case SIM_EVENT_QUERY:
		done = engine_event_is_done(&ev->engine);
		server_reply(s, c, m->req, SIM_OK,
			     (uint64_t[5]){ done, ev->engine.completed_at_ns,
					    engine_event_bound(&s->engine, &ev->engine) },
			     NULL, 0);
		break;
	case SIM_EVENT_SYNC: event_sync(s, c, m, ev); break;
	case SIM_EVENT_NAME: event_name(s, c, m, ev); break;
	}
	return true;
}

/* Puts one mark into each busy stream of the context. The reply comes when the last mark is done. */
static void ctx_sync(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct engine_proc *proc = c->procs[m->card];
	struct engine_stream *stream, *next;
	struct waiter *w;

	if (is_lost(s, c, m->card) || !(w = waiter_new(c, m->req))) {
		server_reply(s, c, m->req, SIM_CARD_LOST, NULL, NULL, 0);
		return;
	}
	/* Start at 1 for this function itself, so that no mark can complete the wait early. */
	w->left = 1;
	for (stream = proc ? proc->streams : NULL; stream; stream = next) {
		next = stream->next;
		if (stream->head && stream->context == m->arg[0]) {
			w->left++;
			if (!engine_mark(&s->engine, stream, (uintptr_t)w))
				w->left--;
		}
	}
	if (--w->left == 0)
		waiter_done(s, w, NULL);
}

static void stream_sync(struct server *s, struct client *c, const struct sim_request_msg *m,
			struct engine_stream *stream)
{
	struct waiter *w;

	if (is_lost(s, c, m->card) || !(w = waiter_new(c, m->req))) {
		server_reply(s, c, m->req, SIM_CARD_LOST, NULL, NULL, 0);
		return;
	}
	w->left = 1;
	if (!engine_mark(&s->engine, stream, (uintptr_t)w))
		waiter_done(s, w, NULL);
}

static void stream_new(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct engine_proc *proc = proc_of(s, c, m->card);
	struct engine_stream *stream = proc ? engine_stream_new(proc, m->arg[0], (uint32_t)m->arg[1])
					    : NULL;

	if (proc && m->arg[2])
		engine_proc_set_limit(proc, (uint32_t)m->arg[2]);
	if (stream && !map_set(&c->streams, m->id, stream))
		engine_stream_close(&s->engine, stream);
}

static void ctx_free(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct engine_proc *proc = c->procs[m->card];
	struct engine_stream *stream;
	bool again = proc != NULL;

	while (again) {
		again = false;
		for (stream = proc->streams; stream; stream = stream->next)
			if (stream->context == m->arg[0]) {
				for (uint32_t i = 0; i < c->streams.size; i++)
					if (c->streams.items[i] == stream)
						c->streams.items[i] = NULL;
				engine_stream_kill(&s->engine, stream);
				again = true;
				break;
			}
	}
	server_reply(s, c, m->req, SIM_OK, NULL, NULL, 0);
}

static bool stream_handle(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct engine_stream *stream = map_get(&c->streams, m->id);
	enum engine_op_kind kind = m->type == SIM_SPIN ? ENGINE_SPIN : ENGINE_HOST;
	uint64_t launches = m->type == SIM_WORK ? m->arg[1] : m->type == SIM_SPIN;

	switch (m->type) {
	case SIM_STREAM_FREE:
	case SIM_WORK:
	case SIM_HOST:
	case SIM_SPIN:
	case SIM_STREAM_QUERY:
	case SIM_STREAM_SYNC: break;
	default: return false;
	}
	if (!stream) {
		c->completed_before += launches;
		server_reply(s, c, m->req, SIM_BAD_HANDLE, NULL, NULL, 0);
		return true;
	}
	switch (m->type) {
	case SIM_STREAM_FREE:
		map_set(&c->streams, m->id, NULL);
		engine_stream_close(&s->engine, stream);
		break;
	case SIM_WORK:
		if (is_lost(s, c, m->card) ||
		    !engine_work(&s->engine, stream, m->arg[0], (uint32_t)launches,
				 (uint32_t)m->arg[2], m->arg[3] & 7))
			c->completed_before += launches;
		break;
	case SIM_HOST:
	case SIM_SPIN:
		if (is_lost(s, c, m->card) || !engine_host(&s->engine, stream, kind, m->arg[0]))
			c->completed_before += launches;
		break;
	case SIM_STREAM_QUERY:
		server_reply(s, c, m->req, is_lost(s, c, m->card) ? SIM_CARD_LOST : SIM_OK,
			     (uint64_t[5]){ engine_stream_is_idle(stream), 0,
					    engine_stream_bound(&s->engine, stream) },
			     NULL, 0);
		break;
	case SIM_STREAM_SYNC: stream_sync(s, c, m, stream); break;
	}
	return true;
}

bool work_handle(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	if (stream_handle(s, c, m) || event_handle(s, c, m))
		return true;
	switch (m->type) {
	case SIM_STREAM_NEW: stream_new(s, c, m); return true;
	case SIM_RELEASE:
		for (int i = 0; i < SIM_MAX_CARDS; i++)
			if (c->procs[i] && engine_release(&s->engine, c->procs[i], m->arg[0]))
				break;
		return true;
	case SIM_CTX_SYNC: ctx_sync(s, c, m); return true;
	case SIM_CTX_FREE: ctx_free(s, c, m); return true;
	case SIM_ROOM: c->room_req = m->req; return true;
	default: return false;
	}
}

bool work_is_done(const struct client *c)
{
	for (int i = 0; i < SIM_MAX_CARDS; i++)
		for (const struct engine_stream *st = c->procs[i] ? c->procs[i]->streams : NULL; st;
		     st = st->next)
			if (!engine_stream_is_idle(st))
				return false;
	return true;
}

uint64_t work_next_end(const struct server *s, const struct client *c)
{
	uint64_t due = ENGINE_NEVER;

	for (int i = 0; i < SIM_MAX_CARDS; i++) {
		uint64_t t = c->procs[i] ? engine_next_completion(&s->engine, c->procs[i])
					 : ENGINE_NEVER;
		due = t < due ? t : due;
	}
	return due;
}

void work_client_gone(struct server *s, struct client *c)
{
	for (int i = 0; i < SIM_MAX_CARDS; i++)
		if (c->procs[i])
			engine_proc_free(&s->engine, c->procs[i]);
	memset(c->procs, 0, sizeof(c->procs));
	/* A watched event outlives c if another client holds it too, so its waiters must not point to c. */
	for (struct event *ev = s->watched_events; ev; ev = ev->next_watched)
		for (struct waiter *w = ev->waiters; w; w = w->next)
			if (w->client == c)
				w->client = NULL;
	for (uint32_t i = 0; i < c->events.size; i++)
		if (c->events.items[i])
			event_release(s, c->events.items[i]);
	while (c->waiters) {
		struct waiter *w = c->waiters;

		c->waiters = w->next;
		free(w);
	}
	free(c->events.items);
	free(c->streams.items);
}
