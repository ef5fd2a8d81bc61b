/*
 * The census: what NVML says of every card and GPU process, read by a thread of its own (NVML can be
 * slow), and compared with the ledgers by the main thread.
 *
 *     main:   census_request()  notes each ledger, wakes the thread
 *     thread: reads every card
 *     main:   compares: violations, the cost of a context, what drains
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/gpu/nvml/census_policy.h"
#include "daemon/gpu/nvml/gpu.h"

#define CENSUS_MAX_PROCESSES 4096
struct node;
struct census;

/* Starts the thread; node's backend and cards must be open. */
int census_start(struct node *node, struct census **ret, struct error *err);

/* Stops it: waits for the NVML call under way. NULL is fine; returns NULL. */
struct census *census_stop(struct census *census);

/* Asks for a census; one that is under way counts. Main thread only. */
void census_request(struct census *census);
/*
 * To be called once a second and when a card's memory has changed: asks for a census where one is due that was put
 * off as nothing had changed. Main thread only, as:
 */
void census_look(struct node *node);
/* For who asks for one at times only, in case something has changed: not where nothing has. */
void census_request_if_changed(struct node *node);
/* How long the driver has not answered the reading under way; 0: there is none. Main thread only. */
uint64_t census_wait_ns(const struct census *census, uint64_t now_ns);
/* From the next request on, are the processes' samples of use read as well? Not at first. */
void census_want_use(struct census *census, bool wanted);

/* True when a library has measured something that a census has not seen: one is due. Main thread only. */
bool census_is_due(struct node *node);

/* As subsystem.h has them. */
void census_tenants_changed(struct node *node);
void census_populated_changed(struct node *node);
