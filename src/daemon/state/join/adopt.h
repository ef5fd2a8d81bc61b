/*
 * Adoption after a restart: makes the previous daemon's tenants again from their state files. Each
 * gets new memory files and its socket. Its processes notice that the heartbeat stopped, register
 * again and copy their usage into their new slots (slot.migrated).
 *
 * control.adopting holds back new reservations until all live processes have moved, or until
 * config.adopt_wait_ns has passed. Until a process has moved or died, its usage in the state file
 * counts in the region's unslotted_bytes. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;
struct tenant;

/*
 * Adopts every tenant that it can and returns their number. Logs the other tenants and leaves their
 * files as they are.
 */
unsigned adopt_all(struct node *node);

/*
 * Call when a process has registered. `from_before`: the process moves over from the previous
 * daemon and will copy its old usage into the slot. If false although the state file names the
 * process, it has executed a new program (exec), so its old usage is dropped.
 */
void adopt_registered(struct tenant *tenant, int pid, unsigned slot, bool from_before);

/* Whether any tenant still waits for a process that the previous daemon knew. */
bool adopt_is_anybody_expected(const struct node *node);

/* Whether process `pid` of the previous daemon has yet to move over to this tenant. */
bool adopt_is_expected(const struct tenant *tenant, int pid);

/*
 * Call when a slot was freed. If a process was still moving into it, adoption waits for that
 * process again.
 */
void adopt_slot_gone(struct tenant *tenant, int pid, unsigned slot);

/*
 * Handler of node->adopt_timer: ends the adoption of each tenant whose processes have all moved, or
 * whose time is up. `data` is the node.
 */
void adopt_look(void *data, uint32_t events);

/*
 * Stops watching for the end of the tenant's command. Call when the command, or another client,
 * holds the tenant again.
 */
void adopt_forget_command(struct tenant *tenant);

/* Stops waiting for all old processes of the tenant and for its command. */
void adopt_forget_all(struct tenant *tenant);
