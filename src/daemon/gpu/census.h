/*
 * The census: what NVML reports of every card and GPU process. A thread reads it, because NVML can
 * be slow. The main thread compares it with the ledgers.
 *
 *     main:   census_request()  notes each ledger, wakes the thread
 *     thread: reads every card
 *     main:   compares: violations, the cost of a context, draining memory
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

/* Starts the thread. The node's backend and cards must be open. */
int census_start(struct node *node, struct census **ret, struct error *err);

/* Stops the thread, after the NVML call in progress. NULL is allowed; returns NULL. */
struct census *census_stop(struct census *census);

/* Requests a census, unless one is already in progress. Main thread only. */
void census_request(struct census *census);
/*
 * Call once a second and when a card's memory use has changed. If a census was put off because
 * nothing changed, and something has changed now, requests it. Main thread only, like the next
 * function.
 */
void census_look(struct node *node);
/* Requests a census only if something may have changed since the last one. */
void census_request_if_changed(struct node *node);
/*
 * How long the driver has not answered the reading in progress; 0 if no reading is in progress.
 * Main thread only.
 */
uint64_t census_wait_ns(const struct census *census, uint64_t now_ns);
/* Whether later censuses also read the processes' samples of use. The default is no. */
void census_want_use(struct census *census, bool wanted);

/*
 * Whether a library has measured memory that no census has seen, so that a census is due. Main
 * thread only.
 */
bool census_is_due(struct node *node);

/* Events of subsystem.h. */
void census_tenants_changed(struct node *node);
void census_populated_changed(struct node *node);
