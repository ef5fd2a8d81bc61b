/*
 * The steps that every allocation hook shares: reserve, call, remember; forget, free, give back.
 */
#ifndef ALLOT_INTERPOSE_CHARGE_H
#define ALLOT_INTERPOSE_CHARGE_H

#include "interpose/ptrmap.h"

#define KIB 1024ULL
#define MIB (1024 * KIB)

/*
 * What a request of this size costs on the card, as measured on an H200 with driver 580: up to 1 MiB
 * it shares 2 MiB chunks with others at 512-byte steps, above it has whole 2 MiB pages.
 */
uint64_t charge_rounded(uint64_t bytes);

/*
 * Reserves, and when that fails trims this process's memory pools and tries once more. 0 or -ENOMEM,
 * which is counted as a denial.
 */
int charge_reserve(int index, uint64_t bytes);

/*
 * Notes what a successful call has made. False when the note can't be kept (no memory): the
 * reservation is given back, and the caller must free what it made and fail the call.
 */
bool charge_remember(enum holding_kind kind, uint64_t key, int index, uint64_t bytes,
		     uint64_t owner);

/* The current context, as the owner of what dies with it. */
uint64_t charge_owner(void);

#endif
