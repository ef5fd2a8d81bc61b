/*
 * Allocations that the quota allows and the card has no room for, in a swappable process: they wait, and the
 * daemon sends others off the card for them (swap.h). Thread safe.
 */
#ifndef ALLOT_INTERPOSE_SWAP_ROOM_H
#define ALLOT_INTERPOSE_SWAP_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What is in use on the device now, an allocation that is about to be made included, is more than the daemon
 * leaves to it.
 */
bool swap_is_beyond_bound(int device);

/* Wants `bytes` more on the device (index in the tenant's list) from here on, until no more (negative). */
void swap_want(int device, int64_t bytes);

/* Of all threads. */
uint64_t swap_wanted(int device);

/*
 * Waits a while, for as many times as the daemon says that room will be made; *since_ns is moved to the last
 * time that it did. False: for a minute since then there was no hope, or no daemon.
 */
bool swap_wait_for_room(int device, uint64_t *since_ns);

/* In a forked child. */
void swap_room_reset(void);

#endif
