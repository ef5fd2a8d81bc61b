/*
 * Gangs in the daemon (policy/gang/gang.h): the board that all cards' arbitrations share, behind a lock, and the wake-ups
 * between them. Each card's thread tells and asks in its own step. Where that changes what another card is to do, it wakes
 * that card's thread afterwards, without holding a lock of its own.
 *
 * All calls are thread safe. Lock order: a card's, then the board's; the list of bells, then a card's.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "policy/gang/gang.h"

struct gangs;

struct gangs *gangs_new(void); /* NULL when out of memory */
/* No arbitration may use it any more. NULL is fine; returns NULL. */
struct gangs *gangs_free(struct gangs *gangs);

/* From now on this bell wakes that card's thread. NULL: none does, and no bell_wake() for the card is under way. */
void gangs_set_card(struct gangs *gangs, unsigned card, _Atomic uint32_t *bell);
/* Wakes the cards' threads, a bit each. The caller holds no arbitration's lock. */
void gangs_wake(struct gangs *gangs, uint64_t cards);

/* A tenant with several cards. Returns its number; negative: it can't be a gang, and is none. */
int gangs_add(struct gangs *gangs);
/* After its lessees; a negative number is fine. */
void gangs_remove(struct gangs *gangs, int gang);

/* The board, locked until it is given back. */
struct gang_board *gangs_lock(struct gangs *gangs);
void gangs_unlock(struct gangs *gangs);
