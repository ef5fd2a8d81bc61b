/*
 * A gang is a tenant that has its turns on several cards at the same time (policy/gang/device_gang.h). The arbitrations of all
 * cards share one board, on which these turns are decided. In each step, a card's thread reports to the board and reads the
 * board's decisions. If a decision for another card changed, the thread wakes that card's thread, after releasing its own lock.
 *
 * All calls are thread safe. Lock order: the lock of the wake words (gangs_set_card()), a card's lock, the board's lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "policy/gang/device_gang.h"

struct gangs;

struct gangs *gangs_new(void); /* NULL if out of memory */
/* Frees `gangs`, which no arbitration may use any more. NULL is allowed; returns NULL. */
struct gangs *gangs_free(struct gangs *gangs);

/*
 * Sets the word by which gangs_wake() wakes the card's thread. After a call with NULL, no doorbell_wake() for the card is in
 * progress.
 */
void gangs_set_card(struct gangs *gangs, unsigned card, _Atomic uint32_t *wake_word);
/* Wakes the threads of the cards in a bit mask. The caller must not hold an arbitration's lock. */
void gangs_wake(struct gangs *gangs, uint64_t cards);

/*
 * Adds a tenant with several cards. Returns the tenant's number, or a negative number if the board is full: the tenant's turns
 * are then independent on each card.
 */
int gangs_add(struct gangs *gangs);
/* Removes a tenant. Call after the tenant's lessees were removed. A negative number is allowed. */
void gangs_remove(struct gangs *gangs, int gang);

/* Locks the board and returns it. Release it with gangs_unlock(). */
struct gang_board *gangs_lock(struct gangs *gangs);
void gangs_unlock(struct gangs *gangs);
