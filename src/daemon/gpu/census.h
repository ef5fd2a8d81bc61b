/*
 * A census is one reading of what NVML reports about every card and GPU process. A thread reads, because NVML can be slow. The
 * main thread compares the result with the ledgers: the memory that each tenant process's library has counted.
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

/* Starts the thread. The backend and cards must be open. */
int census_start(struct node *node, struct census **ret, struct error *err);

/* Stops the thread after the NVML call in progress. NULL is allowed; returns NULL. */
struct census *census_stop(struct census *census);

/* Requests a census, unless one is in progress. Main thread only. */
void census_request(struct census *census);
/*
 * Call once a second, and when a card's memory use changed. Periodic censuses pause while nothing changes (census_policy.h).
 * This call ends the pause if a ledger or a card's memory use has changed since the last census, or a part of the daemon needs
 * censuses. Main thread only.
 */
void census_resume_if_changed(struct node *node);
/* Requests a census, unless periodic censuses may pause now (see census_resume_if_changed()). Main thread only. */
void census_request_if_changed(struct node *node);
/* How long ago the census in progress was requested; 0: none. If long ago, the driver does not answer. Main thread only. */
uint64_t census_wait_ns(const struct census *census, uint64_t now_ns);
/* Sets whether later censuses read each process's use (struct gpu_use). At first they do not. */
void census_enable_use(struct census *census, bool wanted);

/* Returns true if a process reports memory (fresh_bytes in region.h) that no census has confirmed. Main thread only. */
bool census_is_due(struct node *node);

/* Handlers of the events tenants_changed and populated_changed (subsystem.h). */
void census_tenants_changed(struct node *node);
void census_populated_changed(struct node *node);
