/*
 * A cache of cuGetProcAddress answers for names that known.c does not cover: names of a newer CUDA, and names that
 * do not exist. The answer is the same each time, and the runtimes of several libraries in a process ask for the
 * same names. A repeated lookup here takes less time than the driver itself needs.
 *
 * Thread safe, without a lock; allocates nothing. Has room for about 500 names, with the last answer for each.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"

struct question {
	const void *asked; /* the driver's function; another driver may answer differently */
	uint64_t hash;     /* hash of the name (name.h) */
	int version;
	cuuint64_t flags;

	/* Set by answers_find(). */
	_Atomic uint64_t *kept; /* where the answer is stored; NULL if there is no room */
	uint64_t packed;        /* the question's half of the stored word */
};

struct answer {
	void *pfn;
	CUresult result; /* CUDA_SUCCESS or CUDA_ERROR_NOT_FOUND */
	CUdriverProcAddressQueryResult status;
};

/* Finds a stored answer. Returns false if there is none. */
bool answers_find(struct question *question, struct answer *ret_answer);

/* Stores the answer. Call after answers_find() with the same question. */
void answers_keep(const struct question *question, const struct answer *answer);
