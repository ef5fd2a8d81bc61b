/*
 * The time model of the simulated cards: pure policy on virtual time, no clock and no I/O. The
 * caller says when work was submitted and up to when to count; every completion time follows from
 * that by arithmetic, so a caller that comes late changes nothing but when it hears of it.
 *
 * The model, per card:
 *  - A stream is a queue. The heads of a process's streams run side by side, ENGINE_AT_ONCE at most:
 *    who has begun goes on, then in order of submission. Copies that go the same way share a link: of
 *    each way one at a time.
 *  - Each piece takes a part of the card's SMs. Where those that run want more than there is, all run so
 *    much slower: its length is that of the piece alone. A process may be limited to a part of the SMs
 *    (by MPS's active thread percentage): where its pieces want more than that, they run so much slower.
 *  - A spin (a persistent kernel) occupies the card until it is released, but leaves the other
 *    streams of its process all the room that they want, as a persistent kernel of few blocks does.
 *  - Processes of one group (clients of one MPS server) run at the same time, as one process to the
 *    others.
 *  - Between processes: round robin, slice_ns each; when a slice ends while another process has
 *    work, gap_ns are lost. When another process than ran last begins, after that one's work has
 *    ended, switch_ns are lost; alone, nothing is. Each change of processes is one or the other.
 *  - A stream whose head waits (for an event, for the host) occupies nothing.
 *  - The legacy stream of a context waits for all work of the context's blocking streams that was
 *    submitted before, and they for it.
 *  - Events cost nothing and happen the moment the work before them is done.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/server/meter.h"
#include "sim/wire.h"

#define ENGINE_NEVER UINT64_MAX
#define ENGINE_ALL 1000000U /* of a card's SMs */
#define ENGINE_AT_ONCE 128  /* pieces of one process: as kernels on an H200 */

struct engine;
struct engine_stream;

enum engine_op_kind {
	ENGINE_WORK,   /* takes ns of the card */
	ENGINE_MARK,   /* takes nothing; for notices */
	ENGINE_RECORD, /* an event happens */
	ENGINE_AWAIT,  /* waits for an event */
	ENGINE_HOST,   /* waits for the host to release it */
	ENGINE_SPIN,   /* occupies the card until the host releases it */
};

/* Outlives its streams. `completed` trails `recorded` while a record of it is under way. */
struct engine_event {
	uint64_t recorded;
	uint64_t completed;
	uint64_t completed_at_ns;
	/* Where the latest record stands, for engine_event_bound; NULL when it is done. */
	struct engine_stream *stream;
	uint64_t cum_ns;
	uint32_t awaits; /* queued ENGINE_AWAITs: not to be freed before they are gone */
	bool orphan;     /* engine_event_drop was called */
	bool watched;    /* the caller wants event_done for it */
};

struct engine_op {
	struct engine_op *next;
	struct engine_op *next_notice;
	enum engine_op_kind kind;
	bool notify; /* tell the caller when it is done (HOST and SPIN: when it starts) */
	bool started, released;
	uint32_t launches; /* counted as this many launches in flight */
	uint64_t seq;
	uint64_t left_ns;
	uint64_t rest, rest_of; /* done beyond whole nanoseconds: rest / rest_of of one more */
	uint32_t part;          /* of the card's SMs that it takes, of ENGINE_ALL */
	uint32_t way;           /* of a copy: enum sim_way */
	uint64_t cum_ns;        /* work of its stream up to and with this one, ever */
	struct engine_event *event;
	uint64_t event_no;
	uint64_t cookie;
};

struct engine_stream {
	struct engine_stream *next; /* of the process */
	struct engine_proc *proc;
	struct engine_op *head, *tail;
	struct engine_op *notices, *notices_tail;
	uint64_t context; /* streams of one context share it */
	uint32_t flags;   /* enum sim_stream_flags */
	bool closed;      /* freed once it is empty */
	bool runs;        /* its head does, when its process has the card */
	uint64_t cum_ns;  /* of all work ever submitted */
	uint64_t done_ns;
};

/* One process on one card. */
struct engine_proc {
	struct engine_proc *next; /* ring of the card, in order of arrival */
	struct engine_card *card;
	struct engine_stream *streams;
	uint64_t group;   /* 0: none */
	uint32_t limit;   /* of the card's SMs that it may use, of ENGINE_ALL */
	uint32_t running; /* streams whose heads run when this process has the card */
	uint64_t wanted;  /* the sum of their parts */
	uint32_t ways;    /* bit by enum sim_way: a copy runs that way */
	uint32_t spinning;
	bool runnable;
	uint64_t busy_ns;
	uint64_t completed; /* launches done, ever */
	uint64_t submitted;
	struct meter meter;
	void *owner;
};

struct engine_card {
	uint64_t slice_ns, gap_ns, switch_ns;
	struct engine_proc *procs;
	struct engine_proc *current;
	struct engine_proc *loaded; /* whose work ran last; NULL: nobody's who still lives */
	uint32_t runnable_n;
	uint64_t slice_left_ns;
	uint64_t gap_left_ns; /* until current's work goes on */
	uint64_t busy_ns;
	struct meter meter;
};

/* Calls out of engine_advance and the submitting functions; they must not call back in. */
struct engine_hooks {
	/* An op with `notify` is done, or for HOST and SPIN has been reached. failed: dropped. */
	void (*op_notice)(void *arg, struct engine_stream *stream, struct engine_op *op,
			  bool failed);
	/* A watched event happened. */
	void (*event_done)(void *arg, struct engine_event *event);
	void *arg;
};

struct engine {
	uint64_t now_ns;
	uint64_t seq;
	uint32_t cards_n;
	bool dirty; /* an event happened: streams that wait must be looked at again */
	struct engine_card cards[SIM_MAX_CARDS];
	struct engine_hooks hooks;
	struct engine_op *spare; /* freed ops, for reuse */
};

void engine_init(struct engine *e, uint64_t now_ns, struct engine_hooks hooks);
/* Frees what is left of procs and streams; events are the caller's. */
void engine_fini(struct engine *e);
struct engine_card *engine_add_card(struct engine *e, uint64_t slice_ns, uint64_t gap_ns,
				    uint64_t switch_ns);

/* NULL when memory is out. */
struct engine_proc *engine_proc_new(struct engine *e, struct engine_card *card, void *owner);
/* Runs at the same time as others of the group from now on. Before it has any work. */
static inline void engine_proc_set_group(struct engine_proc *proc, uint64_t group)
{
	proc->group = group;
}
/* Its pieces have no more than that of the card's SMs together; of ENGINE_ALL, not 0. At any time. */
static inline void engine_proc_set_limit(struct engine_proc *proc, uint32_t part)
{
	proc->limit = part < ENGINE_ALL ? part : ENGINE_ALL;
}
/* Drops all of its work; notices of it are not given. The card is free for others at once: there is
 * nothing to change from. */
void engine_proc_free(struct engine *e, struct engine_proc *proc);
struct engine_stream *engine_stream_new(struct engine_proc *proc, uint64_t context, uint32_t flags);
/* The stream ends when its work is done; the pointer is the engine's from here on. */
void engine_stream_close(struct engine *e, struct engine_stream *stream);
/* Drops all work of the stream and frees it; its notices are given as failed. */
void engine_stream_kill(struct engine *e, struct engine_stream *stream);
/* Drops all work of all streams, notices given as failed: the card is lost. */
void engine_card_fail(struct engine *e, struct engine_card *card);

/* Everything up to t_ns happens, in order of virtual time. Going back is a no-op. */
void engine_advance(struct engine *e, uint64_t t_ns);
/* The next time at which a notice can come at the earliest, else NEVER; a bound that moves: ask
 * again then. What a release by the host must come before counts as NEVER. */
uint64_t engine_next_notice(const struct engine *e);
/* The same for an event's latest record, and for the next completion of any work of proc. */
uint64_t engine_next_event(const struct engine *e, const struct engine_event *ev);
uint64_t engine_next_completion(const struct engine *e, const struct engine_proc *proc);

/* All submit at engine time `now_ns`: advance first. False when memory is out. */
bool engine_work(struct engine *e, struct engine_stream *s, uint64_t ns, uint32_t launches,
		 bool notify, uint64_t cookie);
/* Work that takes `part` of the card's SMs, of ENGINE_ALL; 0 counts as 1. way: a copy's; SIM_WAY_NONE: a kernel's. */
bool engine_copy(struct engine *e, struct engine_stream *s, uint64_t ns, uint32_t launches,
		 uint32_t part, enum sim_way way);
bool engine_mark(struct engine *e, struct engine_stream *s, uint64_t cookie);
bool engine_record(struct engine *e, struct engine_stream *s, struct engine_event *event);
bool engine_await(struct engine *e, struct engine_stream *s, struct engine_event *event);
/* HOST or SPIN; op_notice comes when it is reached, and engine_release ends it. */
bool engine_host(struct engine *e, struct engine_stream *s, enum engine_op_kind kind,
		 uint64_t cookie);
/* False when no stream of proc waits at that cookie. */
bool engine_release(struct engine *e, struct engine_proc *proc, uint64_t cookie);

/* The event will not be used again by the caller. True: free it; false: the engine calls
 * event_done with `orphan` set when the last await is gone, and then it may be freed. */
bool engine_event_drop(struct engine *e, struct engine_event *event);
static inline bool engine_event_is_done(const struct engine_event *ev)
{
	return ev->completed == ev->recorded;
}

static inline bool engine_stream_is_idle(const struct engine_stream *s)
{
	return !s->head;
}

/* Lower bounds on when all that is queued now is done; exact when nothing else runs. */
uint64_t engine_stream_bound(const struct engine *e, const struct engine_stream *s);
uint64_t engine_event_bound(const struct engine *e, const struct engine_event *ev);
