/*
 * Forward progress: programs that wait for themselves, or for each other, in ways that a gate before
 * the GPU could turn into a deadlock. Each ends, or the watchdog says where it hung.
 *
 * A case of two roles is two processes, each in a tenant of its own, with one shared file mapped.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "cuda.h"

#define REPS_MAX 1000
#define SPINS 3 /* kernels of a repetition of `spin` that wait for each other */

#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC UINT64_C(1000000000)

/* The shared file. All zero at first; made by whichever role comes first. */
struct share {
	/* [role]: one word a pair of kernels that spin for each other; mapped into the GPU. */
	_Alignas(4096) uint32_t flag[2][4096];
	_Alignas(4096) CUipcEventHandle event[2];
	_Atomic uint32_t event_step[2]; /* 1: handle written, 2: the other's opened */
	_Atomic uint32_t round[2];      /* repetition that the role has come to */
	_Atomic uint32_t kernels[2];    /* finished, ever: of `sigstop` */
	_Atomic int32_t pid[2];
	_Atomic uint32_t is_over;
};

struct progress {
	const char *name;
	int role;
	unsigned int reps;
	uint64_t kernel_us;
	CUstream stream, second;
	struct share *share; /* of cases with two roles */
	double rep_ms[REPS_MAX];
	double extra[REPS_MAX];
	const char *extra_label; /* what extra[] is; NULL: nothing */
	_Atomic unsigned int done;
	_Atomic uint64_t last_ns; /* when something last went on: the watchdog's */
	uint64_t timeout_ns;
};

struct progress_case {
	const char *name;
	unsigned int default_reps;
	void (*run[2])(struct progress *); /* by role; the second NULL: one role */
};

extern const struct progress_case progress_cases[]; /* ends with a NULL name */

/* One repetition has ended, which took since begin_ns; extra as extra_label says. */
void progress_rep(struct progress *p, uint64_t begin_ns, double extra);

/* Something went on that is no repetition: the watchdog waits anew. */
void progress_sign(struct progress *p);

/* Ends the program as failed, with a line. */
void progress_fail(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static inline void nap_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	nanosleep(&t, NULL);
}

/* progress_alone.c */
void progress_waitvalue(struct progress *p);
void progress_hostfunc(struct progress *p);
void progress_persistent(struct progress *p);
void progress_capture(struct progress *p);

/* progress_pair.c */
void progress_ipc_first(struct progress *p);
void progress_ipc_second(struct progress *p);
void progress_spin(struct progress *p);
void progress_stopped(struct progress *p);
void progress_stopper(struct progress *p);
