/*
 * What cuGetProcAddress answered, kept: the answer for a name, a version and flags is the same each time,
 * and runtimes of several libraries in a process ask for the same names. So asking again costs less than
 * the driver itself takes.
 *
 * Thread safe; allocates nothing. When there is no more room, nothing more is kept.
 */
#ifndef ALLOT_INTERPOSE_ANSWERS_H
#define ALLOT_INTERPOSE_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_abi.h"

struct question {
	const void *asked; /* the driver's function: of another driver, another answer */
	const char *name;
	int version;
	cuuint64_t flags;
	uint64_t hash; /* answers.c's; 0 at first */
	size_t length;
};

struct answer {
	void *pfn;
	CUresult result;
	CUdriverProcAddressQueryResult status;
};

/* False: not asked before. */
bool answers_find(struct question *question, struct answer *ret_answer);

/*
 * Not while another thread keeps one: then, or in the child of a fork in that moment, it is asked again.
 */
void answers_keep(struct question *question, const struct answer *answer);

#endif
