/*
 * What cuGetProcAddress answered, kept: the answer for a name, a version and flags is the same each time,
 * and runtimes of several libraries in a process ask for the same names. So asking again costs less than
 * the driver itself takes. Of each name the last answer is kept, in one word; of names that are in no table
 * of ours, of a few hundred.
 *
 * Thread safe, without a lock; allocates nothing.
 */
#ifndef ALLOT_INTERPOSE_ANSWERS_H
#define ALLOT_INTERPOSE_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_abi.h"

struct question {
	const void *asked; /* the driver's function: of another driver, another answer */
	const char *name;
	int version;
	cuuint64_t flags;

	/* Made by answers_find(). */
	_Atomic uint64_t *kept; /* NULL: no answer to this one is kept */
	uint64_t packed;        /* the question's half of that word */
	bool is_passed;         /* no form of that name is governed */
};

struct answer {
	void *pfn;
	CUresult result; /* CUDA_SUCCESS or CUDA_ERROR_NOT_FOUND */
	CUdriverProcAddressQueryResult status;
};

/* False: not asked before. */
bool answers_find(struct question *question, struct answer *ret_answer);

/* After answers_find() of the same question. */
void answers_keep(const struct question *question, const struct answer *answer);

#endif
