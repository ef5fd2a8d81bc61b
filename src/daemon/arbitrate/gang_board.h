/*
 * A gang is a tenant that has its turns on several GPUs at the same time (policy/gang/device_gang.h). The arbitrations of all
 * GPUs share one board, which decides these turns. In each step, a GPU's thread reports to the board and reads its decisions.
 * If a decision for another GPU changed, the thread wakes that GPU's thread, after releasing its own lock.
 *
 * All calls are thread safe. Lock order: the lock of the wake words (gangs_set_card()), a GPU's lock, the board's lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "policy/gang/device_gang.h"

struct gangs;

struct gangs *gangs_new(void); /* NULL if out of memory */
/* No arbitration may use `gangs` any more. NULL is allowed; returns NULL. */
struct gangs *gangs_free(struct gangs *gangs);

/* Sets the word by which gangs_wake() wakes a GPU's thread. After a call with NULL, that GPU is not being woken. */
void gangs_set_card(struct gangs *gangs, unsigned card, _Atomic uint32_t *wake_word);
/* `cards` is a bit mask. The caller must not hold an arbitration's lock. */
void gangs_wake(struct gangs *gangs, uint64_t cards);

/* Returns the tenant's number; negative if the board is full, and the tenant's turns are independent on each GPU. */
int gangs_add(struct gangs *gangs);
/* Call after the tenant's lessees were removed. A negative number is allowed. */
void gangs_remove(struct gangs *gangs, int gang);

struct gang_board *gangs_lock(struct gangs *gangs);
void gangs_unlock(struct gangs *gangs);
