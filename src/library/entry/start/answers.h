/*
 * A cache of cuGetProcAddress answers for names that known.c lacks: names of a newer CUDA, and names that do not exist. Several
 * libraries in a process ask for the same names, and the driver's answer never changes.
 *
 * Thread safe without a lock; allocates nothing. Has room for about 500 names, with the last answer for each.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"

struct question {
	/* The driver's lookup function: cuGetProcAddress and its _v2 answer differently. */
	const void *asked;
	uint64_t hash; /* of the name (name.h) */
	int version;
	cuuint64_t flags;

	/* answers_find() sets these. */
	_Atomic uint64_t *entry; /* where the answer is stored; NULL if there is no room */
	uint64_t packed;         /* the question in the format of answers.c */
};

struct answer {
	void *pfn;
	CUresult result; /* CUDA_SUCCESS or CUDA_ERROR_NOT_FOUND */
	CUdriverProcAddressQueryResult status;
};

bool answers_find(struct question *question, struct answer *ret_answer);

/* Call after answers_find() with the same question. */
void answers_store(const struct question *question, const struct answer *answer);
