/* NVML's queries, and `allot-sim --ctl`: statistics and faults. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/server/server.h"

/* Returns the number of the last complete bucket (struct meter). */
static uint64_t last_bucket(const struct server *s)
{
	uint64_t now = s->engine.now_ns / METER_BUCKET_NS;

	return now ? now - 1 : 0;
}

static bool has_context(const struct client *c, uint32_t card)
{
	for (const struct hold *h = c->holds; h; h = h->next)
		if (h->context && h->block->card == card)
			return true;
	return false;
}

static bool is_on(const struct server *s, uint32_t of, uint32_t card)
{
	const struct sim_card_info *info = &s->spec.cards[of].info;

	return of == card || (info->mig == SIM_MIG_INSTANCE && info->parent == card);
}

static bool has_context_on(const struct server *s, const struct client *c, uint32_t card)
{
	for (uint32_t i = 0; i < s->spec.cards_n; i++)
		if (is_on(s, i, card) && has_context(c, i))
			return true;
	return false;
}

/* Returns a number that looks random, but is always the same for one bucket. */
static uint64_t scatter(uint64_t bucket)
{
	uint64_t x = (bucket + 1) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 27;
}

static bool is_listed(const struct server *s, const struct client *c, uint32_t card)
{
	return has_context_on(s, c, card) && c->process != SIM_PROCESS_CHECKPOINTED;
}

static uint32_t client_pct(const struct client *c, uint32_t card, uint64_t bucket)
{
	return c->procs[card] ? meter_pct(&c->procs[card]->meter, bucket) : 0;
}

/*
 * Fills in how much each listed process used the GPU in the buckets from `first` to `last`. As on driver 580, one process gets
 * all of a bucket's use. Driver 580 takes the process that works at the bucket's end. The simulation takes a random one, in
 * proportion to the processes' work.
 */
static void sample_use(const struct server *s, uint32_t card, uint64_t first, uint64_t last,
		       struct sim_process_state *processes)
{
	struct sim_process_state *p;
	for (uint64_t bucket = first; bucket <= last; bucket++) {
		uint64_t sum = 0;
		for (struct client *c = s->clients; c; c = c->next)
			sum += is_listed(s, c, card) ? client_pct(c, card, bucket) : 0;
		uint64_t chosen = sum ? scatter(bucket) % sum : 0;
		p = processes;
		for (struct client *c = s->clients; c && sum; c = c->next) {
			if (!is_listed(s, c, card))
				continue;
			uint64_t pct = client_pct(c, card, bucket);
			if (chosen < pct) {
				p->busy_pct += meter_pct(&s->engine.cards[card].meter, bucket);
				p->stamp_us = (bucket + 1) * METER_BUCKET_NS / 1000;
				break;
			}
			chosen -= pct;
			p++;
		}
	}
	p = processes;
	for (struct client *c = s->clients; c && first <= last; c = c->next)
		if (is_listed(s, c, card)) {
			uint32_t buckets = (uint32_t)(last - first + 1);
			p->busy_pct = (p->busy_pct + buckets - 1) / buckets;
			p++;
		}
}

/* Returns the first bucket that is kept and ended less than age_us ago; last + 1 if there is none. */
static uint64_t first_bucket(const struct server *s, uint64_t last, uint64_t age_us)
{
	uint64_t kept = last >= METER_BUCKETS - 2 ? last - (METER_BUCKETS - 2) : 0;
	if (age_us > s->engine.now_ns / 1000)
		return kept;
	/* Callers compute the age with their own clock, so allow an error of 10 ms. */
	uint64_t first = (s->engine.now_ns + 10000000 - age_us * 1000) / METER_BUCKET_NS;
	return first < kept ? kept : first > last ? last + 1 : first;
}

/* For a GPU in MIG mode, counts the memory and processes of all its instances, but no busy time. */
static void card_state(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct sim_card_state *state;
	struct sim_process_state *p;
	uint64_t bucket = last_bucket(s);
	size_t max = 0;

	for (struct client *o = s->clients; o; o = o->next)
		max++;
	state = calloc(1, sizeof(*state) + max * sizeof(*p));
	if (!state) {
		server_reply(s, c, m->req, SIM_OOM, NULL, NULL, 0);
		return;
	}
	for (uint32_t i = 0; i < s->spec.cards_n; i++)
		if (is_on(s, i, m->card))
			state->used_bytes += s->used_bytes[i];
	state->now_ns = s->engine.now_ns;
	state->busy_pct = meter_pct(&s->engine.cards[m->card].meter, bucket);
	state->lost = s->lost >> m->card & 1;
	p = (struct sim_process_state *)(state + 1);
	for (struct client *o = s->clients; o; o = o->next) {
		if (!is_listed(s, o, m->card))
			continue;
		p->pid = (uint32_t)o->pid;
		for (uint32_t i = 0; i < s->spec.cards_n; i++)
			if (is_on(s, i, m->card))
				p->used_bytes += o->held_bytes[i];
		p++;
		state->processes++;
	}
	sample_use(s, m->card, first_bucket(s, bucket, m->arg[0]), bucket,
		   (struct sim_process_state *)(state + 1));
	server_reply(s, c, m->req, SIM_OK, NULL, state,
		     sizeof(*state) + state->processes * sizeof(*p));
	free(state);
}

static void samples(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct sim_sample out[METER_BUCKETS];
	uint64_t last = last_bucket(s);
	uint64_t first = last >= METER_BUCKETS - 2 ? last - (METER_BUCKETS - 2) : 0;
	size_t n = 0;

	for (uint64_t bucket = first; bucket <= last; bucket++) {
		uint64_t end_us = (bucket + 1) * METER_BUCKET_NS / 1000;

		if (end_us <= m->arg[0] / 1000)
			continue;
		out[n++] = (struct sim_sample){
			.end_us = end_us,
			.busy_pct = meter_pct(&s->engine.cards[m->card].meter, bucket),
		};
	}
	server_reply(s, c, m->req, SIM_OK, NULL, out, n * sizeof(*out));
}

static void notify_listeners(struct server *s, uint32_t note, uint32_t card, uint64_t number)
{
	for (struct client *c = s->clients; c; c = c->next)
		if (c->listens)
			server_note(s, c, note, card, number);
}

static void xid(struct server *s, uint32_t card, uint64_t number)
{
	notify_listeners(s, SIM_NOTE_XID, card, number);
}

static void fail_card(struct server *s, uint32_t card)
{
	s->lost |= 1u << card;
	for (struct client *c = s->clients; c; c = c->next)
		if (c->procs[card] || has_context(c, card))
			c->broken |= 1u << card;
	engine_card_fail(&s->engine, &s->engine.cards[card]);
}

static uint32_t parent_card(const struct server *s, uint32_t card)
{
	const struct sim_card_info *info = &s->spec.cards[card].info;

	return info->mig == SIM_MIG_INSTANCE ? info->parent : card;
}

static void fail_gpu(struct server *s, uint32_t card)
{
	uint32_t whole = parent_card(s, card);

	for (uint32_t i = 0; i < s->spec.cards_n; i++)
		if (is_on(s, i, whole))
			fail_card(s, i);
	xid(s, whole, 79); /* "GPU has fallen off the bus" */
}

static void restore_gpu(struct server *s, uint32_t card)
{
	for (uint32_t i = 0; i < s->spec.cards_n; i++)
		if (is_on(s, i, parent_card(s, card)))
			s->lost &= ~(1u << i);
}

static void stats(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	const char *comma = "";

	if (!f) {
		server_reply(s, c, m->req, SIM_OOM, NULL, NULL, 0);
		return;
	}
	fprintf(f, "{\"now_us\":%" PRIu64 ",\"cards\":[", s->engine.now_ns / 1000);
	for (uint32_t i = 0; i < s->spec.cards_n; i++)
		fprintf(f,
			"%s{\"index\":%u,\"uuid\":\"%s\",\"memory_bytes\":%" PRIu64
			",\"memory_used_bytes\":%" PRIu64 ",\"busy_us\":%" PRIu64 ",\"lost\":%s}",
			i ? "," : "", i, s->spec.cards[i].info.uuid,
			s->spec.cards[i].info.memory_bytes, s->used_bytes[i],
			s->engine.cards[i].busy_ns / 1000, s->lost >> i & 1 ? "true" : "false");
	fprintf(f, "],\"clients\":[");
	for (struct client *o = s->clients; o; o = o->next) {
		const char *inner = "";

		if (o->kind != SIM_KIND_CUDA)
			continue;
		fprintf(f, "%s{\"pid\":%d,\"cards\":[", comma, (int)o->pid);
		comma = ",";
		for (uint32_t i = 0; i < s->spec.cards_n; i++) {
			const struct engine_proc *p = o->procs[i];

			if (!p && !o->held_bytes[i])
				continue;
			fprintf(f,
				"%s{\"index\":%u,\"held_bytes\":%" PRIu64 ",\"done\":%" PRIu64
				",\"queued\":%" PRIu64 ",\"busy_us\":%" PRIu64 "}",
				inner, i, o->held_bytes[i], p ? p->completed : 0,
				p ? p->submitted - p->completed : 0, p ? p->busy_ns / 1000 : 0);
			inner = ",";
		}
		fprintf(f, "]}");
	}
	fprintf(f, "]}\n");
	if (fclose(f) == 0)
		server_reply(s, c, m->req, SIM_OK, NULL, text, size);
	else
		server_reply(s, c, m->req, SIM_OOM, NULL, NULL, 0);
	free(text);
}

bool observe_handle(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	switch (m->type) {
	case SIM_CARD_INFO:
		server_reply(s, c, m->req, SIM_OK, NULL, &s->spec.cards[m->card].info,
			     sizeof(struct sim_card_info));
		return true;
	case SIM_CARD_STATE: card_state(s, c, m); return true;
	case SIM_SAMPLES: samples(s, c, m); return true;
	case SIM_CTL_STATS: stats(s, c, m); return true;
	case SIM_LISTEN: c->listens = m->arg[0]; break;
	case SIM_CTL_XID: xid(s, m->card, m->arg[0]); break;
	case SIM_CTL_ECC:
		notify_listeners(s, SIM_NOTE_ECC, m->card, 0);
		/* "Double Bit ECC Error", which comes with the event */
		xid(s, m->card, 48);
		break;
	case SIM_CTL_LOSE: fail_gpu(s, m->card); break;
	case SIM_CTL_HEAL: restore_gpu(s, m->card); break;
	default: return false;
	}
	server_reply(s, c, m->req, SIM_OK, NULL, NULL, 0);
	return true;
}
