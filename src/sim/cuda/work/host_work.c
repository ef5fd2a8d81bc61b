/*
 * Work of a stream that the host does: host functions, waits for a value in memory, writes of a value, and kernels that spin on
 * a value. The server says when a stream reaches such work. One thread of this library watches memory and writes values.
 * Another runs the program's functions, which may block.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

#define WATCH_NS 20000 /* time between two checks of watched values */

struct host_op {
	struct host_op *next;
	struct sim_step step;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool started;
static pthread_mutex_t run_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t run_more = PTHREAD_COND_INITIALIZER;
static struct host_op *run_first, *run_last;

static void release(struct host_op *op)
{
	sim_post((struct sim_request_msg){ .type = SIM_RELEASE, .arg = { (uintptr_t)op } });
	free(op);
}

static void *run_thread(void *arg)
{
	for (;;) {
		struct host_op *op;

		pthread_mutex_lock(&run_lock);
		while (!run_first)
			pthread_cond_wait(&run_more, &run_lock);
		op = run_first;
		run_first = op->next;
		pthread_mutex_unlock(&run_lock);
		if (op->step.kind == STEP_CALLBACK)
			((CUstreamCallback)op->step.fn)(op->step.stream, CUDA_SUCCESS,
							op->step.data);
		else
			((CUhostFn)op->step.fn)(op->step.data);
		release(op);
	}
	return NULL;
}

static bool is_condition_met(const struct sim_step *step)
{
	bool is64 = step->kind == STEP_WAIT64;
	uint64_t v, w = step->value;

	if (!sim_va_has_bytes(step->addr, is64 ? 8 : 4))
		return false;
	v = is64 ? __atomic_load_n((uint64_t *)(uintptr_t)step->addr, __ATOMIC_ACQUIRE)
		 : __atomic_load_n((uint32_t *)(uintptr_t)step->addr, __ATOMIC_ACQUIRE);
	if (step->kind == STEP_SPIN)
		return v != 0;
	switch (step->flags & 3) {
	case 0: /* cyclic: >= */
		return is64 ? (int64_t)(v - w) >= 0 : (int32_t)((uint32_t)v - (uint32_t)w) >= 0;
	case 1: return v == w;
	case 2: return (v & w) != 0;
	default: return is64 ? ~(v | w) != 0 : ~((uint32_t)v | (uint32_t)w) != 0;
	}
}

static void write_value(const struct sim_step *step)
{
	bool is64 = step->kind == STEP_WRITE64;

	if (!sim_va_has_bytes(step->addr, is64 ? 8 : 4))
		return;
	if (is64)
		__atomic_store_n((uint64_t *)(uintptr_t)step->addr, step->value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)(uintptr_t)step->addr, (uint32_t)step->value,
				 __ATOMIC_RELEASE);
}

static void *watch_thread(void *arg)
{
	struct host_op *watched = NULL, **at;
	struct sim_reply_msg note;
	int r;

	for (;;) {
		r = link_wait_note(&sim.link, &note, watched ? WATCH_NS : UINT64_MAX);
		if (r < 0)
			return NULL;
		if (r == 1 && note.type == SIM_NOTE_HOST) {
			struct host_op *op = (struct host_op *)(uintptr_t)note.val[0];

			switch (op->step.kind) {
			case STEP_WRITE32:
			case STEP_WRITE64:
				write_value(&op->step);
				release(op);
				break;
			case STEP_HOST_FUNC:
			case STEP_CALLBACK:
				op->next = NULL;
				pthread_mutex_lock(&run_lock);
				if (run_first)
					run_last->next = op;
				else
					run_first = op;
				run_last = op;
				pthread_cond_signal(&run_more);
				pthread_mutex_unlock(&run_lock);
				break;
			default: op->next = watched; watched = op;
			}
		}
		for (at = &watched; *at;) {
			struct host_op *op = *at;

			if (is_condition_met(&op->step)) {
				*at = op->next;
				release(op);
			} else {
				at = &op->next;
			}
		}
	}
}

static void start(void)
{
	pthread_t thread;
	pthread_attr_t attr;
	sigset_t all, before;

	/* The new threads inherit this signal mask, so that only the program's own threads get its signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	started = pthread_create(&thread, &attr, watch_thread, NULL) == 0 &&
		  pthread_create(&thread, &attr, run_thread, NULL) == 0;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

CUresult sim_host_post(CUstream stream, const struct sim_step *step)
{
	struct sim_request_msg m = { .type = SIM_HOST,
				     .card = sim_context_device(stream->ctx)->card,
				     .id = stream->id };
	struct host_op *op;

	pthread_once(&once, start);
	SIM_FAIL_IF(!started || !(op = malloc(sizeof(*op))), CUDA_ERROR_OUT_OF_MEMORY);
	op->step = *step;
	m.arg[0] = (uintptr_t)op;
	if (step->kind != STEP_SPIN)
		return sim_post(m);
	m.type = SIM_SPIN;
	return (CUresult)link_post_work(&sim.link, m, 1);
}
