/*
 * Declarations that the parts of the model of several GPUs (gang_model.h) share:
 *
 *   gang_model.c       tenants and their threads, the daemon, the run, answers
 *   gang_model_card.c  the GPUs: whose kernel runs, and collectives
 */
#pragma once

#include "gang_model.h"

#define TICK_NS (10 * US)
#define QUEUE 256 /* a power of two */
#define LENGTHS 8192
#define LAUNCHES_PER_TICK 4
#define FREE_DEPTH_NS (10 * MS)
#define SLICE_NS (2090 * US)
#define SLICE_GAP_NS (310 * US)
#define POKE_NS (30 * US)
#define BESIDE 16       /* collectives of a rank that run beside its kernels */
#define COLLECTIVES 512 /* that may be under way at a time: more than all queues hold */

struct kernel {
	uint64_t left_ns, predicted_ns;
	bool is_collective;
	uint64_t number; /* of the collective */
};

struct collective {
	unsigned begun, ended;
	uint64_t begun_ns;
};

/* A tenant's part on one device. */
struct rank {
	int index; /* in the device's arbiter */
	enum lease_state word;
	bool is_held; /* the word holds its thread at the gate */
	bool is_slip; /* gang_command() allows only as few kernels in flight as possible */
	uint64_t depth_ns;
	uint64_t runs_at;  /* when the thread goes on */
	bool joins;        /* the thread waits for the end of its work */
	uint64_t asked_at; /* when the work that it waits for was to begin */
	unsigned kernels_left;
	uint64_t rounds, collectives;

	struct kernel queue[QUEUE];
	unsigned head, tail;
	struct kernel beside[BESIDE]; /* with load.overlaps: collectives that run beside the queue */
	unsigned beside_head, beside_tail;
	uint64_t inflight_ns; /* predicted */
	bool busy;
	uint64_t flag_falls_at;
	uint64_t busy_ns, launches, work_ns, spin_ns;
	bool has_lead; /* half of depth_ns has been in flight since the word became GO */
	uint64_t ramp_ns;
	uint32_t sync_points;
	uint64_t progress_at, longest_wait_ns;
	uint64_t begun_at;     /* when the collective at the head began here; 0: it has not begun */
	uint64_t lasted_ns[3]; /* times of the last collectives here, which predict the next */
};

struct model_tenant {
	bool used, stopped;
	int gang;
	struct gang_model_load load;
	struct rank rank[GANG_MODEL_DEVICES];
	struct collective collective[COLLECTIVES];
	uint64_t collectives;
	uint64_t length_ns[LENGTHS], longest_ns;
	unsigned length_count;
};

struct device {
	struct arbiter *arbiter;
	uint64_t poll_at;
	int context; /* number of the tenant whose context is on the GPU; -1 at first */
	uint64_t gap_until, slice_ends;
};

struct gang_model {
	struct gang_model_config config;
	struct gang_board *board;
	uint64_t random, now, violations;
	struct device device[GANG_MODEL_DEVICES];
	struct model_tenant *tenant[GANG_MODEL_TENANTS];
	int count; /* highest number in use + 1 */
};

static inline bool has_rank(const struct model_tenant *t, unsigned d)
{
	return t && t->used && t->load.devices >> d & 1;
}

static inline unsigned queued(const struct rank *r)
{
	return r->tail - r->head + r->beside_tail - r->beside_head;
}

/* Advances device `d` by one tick. */
void gang_card_run(struct gang_model *m, unsigned d);
