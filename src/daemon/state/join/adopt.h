/*
 * Adoption: after a restart, the daemon makes the previous daemon's tenants again from their state files. Each tenant gets new
 * memory files and its socket. Its processes notice that the previous daemon's heartbeat has stopped, register again, and copy
 * their usage into new slots (slot.migrated).
 *
 * While control.adopting is 1, the library delays new allocations of GPU memory. The daemon clears it when all live processes
 * have moved, or when config.adopt_wait_ns has passed. Until a process has moved or died, its usage in the state file counts in
 * the region's unslotted_bytes. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;
struct tenant;

/* Adopts all tenants that it can, and returns their number. Logs those that cannot be adopted, and leaves their files. */
unsigned adopt_all(struct node *node);
/* Ends adopted tenants that nobody uses any more. Call when all parts that hear of a tenant's end have started. */
void adopt_end_unused(struct node *node);

/*
 * With `from_before`, the process comes from the previous daemon and copies its usage into the slot. Otherwise the process has
 * executed a new program, so its usage in the state file, if any, is dropped.
 */
void adopt_registered(struct tenant *tenant, int pid, unsigned slot, bool from_before);

/* Returns true if `pid` was registered with the previous daemon, but is not yet registered with this one. */
bool adopt_is_expected(const struct tenant *tenant, int pid);

/*
 * Call when a slot was freed. A process of the previous daemon that was still copying its usage into the slot counts as not yet
 * registered with this daemon.
 */
void adopt_slot_gone(struct tenant *tenant, int pid, unsigned slot);

/* Handler of node->adopt_timer: ends adoptions that are complete or whose time is up. `data` is the node. */
void adopt_timer_due(void *data, uint32_t events);

/* Stops watching for the end of tenant.command_pid. Call when that command or another client keeps the tenant alive again. */
void adopt_forget_command(struct tenant *tenant);

/* Stops waiting for the tenant's old processes and command. */
void adopt_forget_all(struct tenant *tenant);
