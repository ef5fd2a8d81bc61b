/*
 * The time model of the simulated GPUs ("cards"), on virtual time, without a clock and without I/O. The caller says when work
 * was submitted and up to which time to advance. All completion times follow by arithmetic, so a late call changes only when
 * the caller learns of a completion.
 *
 * The model, per card:
 *
 *  - A stream is a queue. The heads of a process's streams run side by side, at most ENGINE_AT_ONCE.
 *    A head that has begun goes on; the others start in order of submission. Copies in the same
 *    direction share a link, so only one copy runs in each direction at a time.
 *  - Each piece of work takes a part of the card's SMs. If the running pieces want more SMs than there
 *    are, all slow down in proportion. A process may be limited to a part of the SMs (by MPS's active
 *    thread percentage); if its pieces want more than that part, they slow down likewise.
 *  - A spin (a persistent kernel) occupies the card until it is released. It takes no SMs from the
 *    other streams of its process, like a persistent kernel of few blocks.
 *  - Processes of one group (clients of one MPS server) run at the same time. To other processes the
 *    group counts as one process.
 *  - Processes take turns round robin, slice_ns each. If a slice ends while another process has work,
 *    gap_ns are lost. If a process begins after another process's work has ended, switch_ns are lost.
 *    Each change of processes costs one of the two; a process that runs alone loses nothing.
 *  - A stream whose head waits (for an event or for the host) occupies nothing.
 *  - The legacy stream of a context waits for all earlier work of the context's blocking streams, and
 *    they wait for the legacy stream's earlier work.
 *  - Events take no time. An event happens the moment that the work before it is done.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/wire.h"

#define ENGINE_NEVER UINT64_MAX
#define ENGINE_ALL 1000000U /* all SMs of a card; parts of them are given in millionths */
/* Most pieces of a process's work that run at once: an H200's limit of concurrent kernels. */
#define ENGINE_AT_ONCE 128

/* Busy time in buckets of 200 ms, the period of NVML's samples, counted from virtual time 0. Time must not go back. */
#define METER_BUCKET_NS 200000000ull
#define METER_BUCKETS 128

struct meter {
	uint64_t last; /* number of the newest bucket */
	uint32_t busy_ns[METER_BUCKETS];
};

/* Returns how busy a bucket was, in percent; 0 if it is no longer kept. A bucket's number is its start / METER_BUCKET_NS. */
uint32_t meter_pct(const struct meter *m, uint64_t bucket);

struct engine;
struct engine_stream;

enum engine_op_kind {
	ENGINE_WORK,   /* takes ns of the card */
	ENGINE_MARK,   /* takes no time; only gives a notice */
	ENGINE_RECORD, /* an event happens */
	ENGINE_AWAIT,  /* waits for an event */
	ENGINE_HOST,   /* waits until the host releases it */
	ENGINE_SPIN,   /* occupies the card until the host releases it */
};

/* May outlive the streams that record it. `recorded`: number of the newest record; `completed`: of the newest that is done. */
struct engine_event {
	uint64_t recorded;
	uint64_t completed;
	uint64_t completed_at_ns;
	/* The stream of the latest record (NULL when that is done), and its cum_ns at the record. */
	struct engine_stream *stream;
	uint64_t cum_ns;
	uint32_t awaits; /* queued records and awaits; the event is freed only at 0 */
	bool orphan;     /* engine_event_drop() was called */
	bool watched;    /* the caller wants event_done() */
};

struct engine_op {
	struct engine_op *next;
	struct engine_op *next_notice;
	enum engine_op_kind kind;
	bool notify; /* call op_notice() when done (HOST and SPIN: when reached) */
	bool started, released;
	uint32_t launches; /* number of launches that this op counts as */
	uint64_t seq;
	uint64_t left_ns;
	uint64_t remainder, remainder_base; /* progress below 1 ns: remainder / remainder_base ns */
	uint32_t part;                      /* part of the card's SMs, out of ENGINE_ALL */
	uint32_t way;                       /* enum sim_way */
	uint64_t cum_ns; /* ns of all work of the stream up to and including this op */
	struct engine_event *event;
	uint64_t event_no;
	uint64_t cookie;
};

struct engine_stream {
	struct engine_stream *next;
	struct engine_proc *proc;
	struct engine_op *head, *tail;
	struct engine_op *notices, *notices_tail;
	uint64_t context; /* streams of one context share this number */
	uint32_t flags;   /* enum sim_stream_flags */
	bool closed;      /* freed once it is empty */
	bool runs;        /* the head runs while the process has the card */
	uint64_t cum_ns;  /* ns of all work ever submitted */
	uint64_t done_ns;
};

struct engine_proc {
	struct engine_proc *next;
	struct engine_card *card;
	struct engine_stream *streams;
	uint64_t group;   /* 0: none */
	uint32_t limit;   /* part of the SMs that the process may use, out of ENGINE_ALL */
	uint32_t running; /* number of streams with `runs` */
	uint64_t wanted;  /* sum of the parts of running ops */
	uint32_t ways;    /* bit per enum sim_way: a copy runs in that direction */
	uint32_t spinning;
	bool runnable;
	uint64_t busy_ns;
	uint64_t completed;
	uint64_t submitted;
	struct meter meter;
	void *owner;
};

struct engine_card {
	uint64_t slice_ns, gap_ns, switch_ns;
	struct engine_proc *procs;
	struct engine_proc *current;
	struct engine_proc *loaded; /* its work ran last; NULL if it is gone */
	uint32_t runnable_n;
	uint64_t slice_left_ns;
	uint64_t gap_left_ns; /* time until the work of `current` goes on */
	uint64_t busy_ns;
	struct meter meter;
};

/* Called by engine_advance() and by functions that submit work. A hook must not call the engine. */
struct engine_hooks {
	/* An op with `notify` is done, or a HOST or SPIN is reached. failed: the op was dropped. */
	void (*op_notice)(void *arg, struct engine_stream *stream, struct engine_op *op,
			  bool failed);
	/* A watched event's latest record is done. If `orphan` is set: the hook must free the event. */
	void (*event_done)(void *arg, struct engine_event *event);
	void *arg;
};

struct engine {
	uint64_t now_ns;
	uint64_t seq;
	uint32_t cards_n;
	bool dirty; /* an event happened, so waiting streams must be checked again */
	struct engine_card cards[SIM_MAX_CARDS];
	struct engine_hooks hooks;
	struct engine_op *spare;
};

void engine_init(struct engine *e, uint64_t now_ns, struct engine_hooks hooks);
/* Frees all processes, streams and ops. The caller frees the events. */
void engine_fini(struct engine *e);
struct engine_card *engine_add_card(struct engine *e, uint64_t slice_ns, uint64_t gap_ns,
				    uint64_t switch_ns);

/* Adds a process to the card. `owner` is only for the hooks. Returns NULL if out of memory. */
struct engine_proc *engine_proc_new(struct engine *e, struct engine_card *card, void *owner);
/* Lets processes of one group run at the same time. Call before the process has work. */
static inline void engine_proc_set_group(struct engine_proc *proc, uint64_t group)
{
	proc->group = group;
}
/* Limits the process's work to part / ENGINE_ALL of the card's SMs. `part` must not be 0. */
static inline void engine_proc_set_limit(struct engine_proc *proc, uint32_t part)
{
	proc->limit = part < ENGINE_ALL ? part : ENGINE_ALL;
}
/* Frees the process with its streams and their work, without notices. The change to another process then takes no time. */
void engine_proc_free(struct engine *e, struct engine_proc *proc);
struct engine_stream *engine_stream_new(struct engine_proc *proc, uint64_t context, uint32_t flags);
/* Frees the stream when its work is done. The caller must not use the pointer any more. */
void engine_stream_close(struct engine *e, struct engine_stream *stream);
/* Drops all work of the stream, gives the work's notices as failed, and frees the stream. */
void engine_stream_kill(struct engine *e, struct engine_stream *stream);
/* Drops all work of all streams, because the card is lost. Gives the work's notices as failed. */
void engine_card_fail(struct engine *e, struct engine_card *card);

/* Advances virtual time to t_ns: everything up to then happens in order. A t_ns before now_ns changes nothing. */
void engine_advance(struct engine *e, uint64_t t_ns);
/*
 * Returns the earliest possible time of the next notice, or ENGINE_NEVER. The notice may come later, so call again at that
 * time. Streams that wait for the host do not count.
 */
uint64_t engine_next_notice(const struct engine *e);
/* As engine_next_notice(), for an event's latest record, and for the next completion of proc's work. */
uint64_t engine_next_event(const struct engine *e, const struct engine_event *ev);
uint64_t engine_next_completion(const struct engine *e, const struct engine_proc *proc);

/* engine_work() to engine_host() submit at e->now_ns, so call engine_advance() first. They return false if out of memory. */

/* Submits a copy, or a kernel (SIM_WAY_NONE). `ns`: its time when it runs alone; `part`: its SMs, out of ENGINE_ALL. */
bool engine_work(struct engine *e, struct engine_stream *s, uint64_t ns, uint32_t launches,
		 uint32_t part, enum sim_way way);
/* Gives a notice when the work before it is done. Marks that are reached at the same time give theirs in no certain order. */
bool engine_mark(struct engine *e, struct engine_stream *s, uint64_t cookie);
bool engine_record(struct engine *e, struct engine_stream *s, struct engine_event *event);
bool engine_await(struct engine *e, struct engine_stream *s, struct engine_event *event);
/* Submits a HOST or SPIN. op_notice() comes when the stream reaches it. */
bool engine_host(struct engine *e, struct engine_stream *s, enum engine_op_kind kind,
		 uint64_t cookie);
/* Ends the HOST or SPIN with that cookie. Returns false if it is not at the head of a stream of proc. */
bool engine_release(struct engine *e, struct engine_proc *proc, uint64_t cookie);

/* Call when the event will not be used again. True: free it now. False: free it when event_done() comes with `orphan` set. */
bool engine_event_drop(struct engine *e, struct engine_event *event);
static inline bool engine_event_is_done(const struct engine_event *ev)
{
	return ev->completed == ev->recorded;
}

static inline bool engine_stream_is_idle(const struct engine_stream *s)
{
	return !s->head;
}

/* Return a lower bound on when the stream's work, or the event's latest record, is done. Exact if nothing else runs. */
uint64_t engine_stream_bound(const struct engine *e, const struct engine_stream *s);
uint64_t engine_event_bound(const struct engine *e, const struct engine_event *ev);
