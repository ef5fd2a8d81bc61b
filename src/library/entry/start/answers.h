/*
 * What cuGetProcAddress answered, kept, of names that known.c can't tell the answer for: of a newer CUDA, or
 * of nobody's. It is the same each time, and runtimes of several libraries in a process ask for the same
 * names: asking again costs less than the driver itself takes.
 *
 * Thread safe, without a lock; allocates nothing. There is room for some 500 names, for each its last answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"

struct question {
	const void *asked; /* the driver's function: of another driver, another answer */
	uint64_t hash;     /* of the name (name.h) */
	int version;
	cuuint64_t flags;

	/* Made by answers_find(). */
	_Atomic uint64_t *kept; /* NULL: no answer to this one is kept */
	uint64_t packed;        /* the question's half of that word */
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
