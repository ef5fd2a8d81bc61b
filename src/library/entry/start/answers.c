#include "library/entry/start/answers.h"

#include <stdatomic.h>

/*
 * An `entry` of the hash table below, from its lowest bit (the numbers are widths in bits):
 *   address of the function (32, signed, relative to base_of()), `where` (2), found or not (1), status (3),
 * then the question:
 *   index in asked_functions (1), flags (2), version (22), and a bit that is 1, since an empty entry is 0.
 * An answer that does not fit is not stored. There is one entry per name.
 */
enum { WHERE_NOWHERE, WHERE_DRIVER, WHERE_HOOK };
#define WHERE_SHIFT 32
#define FOUND_BIT (1ULL << 34)
#define STATUS_SHIFT 35
#define STATUS_MAX 7
#define QUESTION_SHIFT 38
#define FLAGS_SHIFT 1
#define FLAGS_MAX 3
#define VERSION_SHIFT 3
#define VERSION_MAX 0x3fffff
#define MARK (1ULL << 25)

/* A hash table by the name's hash, in which nothing is ever removed. */
#define ENTRIES 512 /* a power of two */
#define PROBES 16
static struct {
	_Atomic uint64_t hash, entry;
} table[ENTRIES];

/* The driver's lookup functions that the program called, usually cuGetProcAddress and its _v2. */
static const void *_Atomic asked_functions[2];

static int function_index(const void *asked)
{
	for (int i = 0; i < 2; i++) {
		const void *there = atomic_load_explicit(&asked_functions[i], memory_order_relaxed);
		if (there == asked ||
		    (!there && (atomic_compare_exchange_strong(&asked_functions[i], &there, asked) ||
				there == asked)))
			return i;
	}
	return -1;
}

/* Returns the entry for a name, adding one if needed. NULL if there is no room. */
static _Atomic uint64_t *word_of(uint64_t hash)
{
	hash |= !hash;
	for (uint64_t i = hash; i < hash + PROBES; i++) {
		_Atomic uint64_t *at = &table[i % ENTRIES].hash;
		uint64_t there = atomic_load_explicit(at, memory_order_relaxed);
		if (there == hash ||
		    (!there && (atomic_compare_exchange_strong(at, &there, hash) || there == hash)))
			return &table[i % ENTRIES].entry;
	}
	return NULL;
}

static bool pack_question(struct question *q)
{
	int function = function_index(q->asked);

	if (function < 0 || q->flags > FLAGS_MAX || (unsigned)q->version > VERSION_MAX)
		return false;
	q->packed = MARK | (uint64_t)q->version << VERSION_SHIFT | q->flags << FLAGS_SHIFT |
		    (uint64_t)function;
	return true;
}

/* Addresses are relative to a function of this library for a hook, otherwise to the driver's lookup function. */
static uint64_t base_of(uint64_t where, const struct question *q)
{
	return where == WHERE_HOOK ? (uintptr_t)answers_find : (uintptr_t)q->asked;
}

bool answers_find(struct question *q, struct answer *ret_answer)
{
	q->entry = pack_question(q) ? word_of(q->hash) : NULL;
	if (!q->entry)
		return false;
	uint64_t word = atomic_load_explicit(q->entry, memory_order_relaxed);
	if (word >> QUESTION_SHIFT != q->packed)
		return false;
	uint64_t where = word >> WHERE_SHIFT & 3;
	uint64_t address = base_of(where, q) + (uint64_t)(int64_t)(int32_t)word;
	*ret_answer = (struct answer){
		.pfn = where == WHERE_NOWHERE ? NULL : (void *)(uintptr_t)address,
		.result = word & FOUND_BIT ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND,
		.status = (CUdriverProcAddressQueryResult)(word >> STATUS_SHIFT & STATUS_MAX),
	};
	return true;
}

void answers_store(const struct question *q, const struct answer *a)
{
	if (!q->entry || (unsigned)a->status > STATUS_MAX)
		return;
	for (uint64_t where = a->pfn ? WHERE_DRIVER : WHERE_NOWHERE; where <= WHERE_HOOK; where++) {
		uint64_t off = a->pfn ? (uintptr_t)a->pfn - base_of(where, q) : 0;
		if (off != (uint64_t)(int64_t)(int32_t)off)
			continue;
		atomic_store_explicit(q->entry,
				      q->packed << QUESTION_SHIFT |
					      (uint64_t)a->status << STATUS_SHIFT |
					      (a->result == CUDA_SUCCESS ? FOUND_BIT : 0) |
					      where << WHERE_SHIFT | (uint32_t)off,
				      memory_order_relaxed);
		return;
	}
}
