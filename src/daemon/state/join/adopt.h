/*
 * After a restart: the tenants that the daemon before had, from their state files. Each gets fresh
 * memory files and its socket again; its processes notice the silent heartbeat, register anew and copy
 * their usage into their new slots (slot.migrated).
 *
 * Until all that are alive have moved, or config.adopt_wait_ns have passed, control.adopting holds new
 * reservations back. What a process that has not moved held, as far as the state file knows, counts as
 * unslotted, until it moves or dies. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;
struct tenant;

/* Adopts all that can be; what can't is logged and left where it is. Returns how many were. */
unsigned adopt_all(struct node *node);

/* A process registered: with from_before, it will copy its usage; else (exec) its old usage is gone. */
void adopt_registered(struct tenant *tenant, int pid, unsigned slot, bool from_before);

/* Is a process of any tenant still to come? */
bool adopt_is_anybody_expected(const struct node *node);

/* True when a process of that pid is still to come. */
bool adopt_is_expected(const struct tenant *tenant, int pid);

/* A slot was given back: who was moving into it is waited for again. */
void adopt_slot_gone(struct tenant *tenant, int pid, unsigned slot);

/* Handler of node->adopt_timer: `data` is the node. */
void adopt_look(void *data, uint32_t events);

/* Its command holds it again, or somebody else does. */
void adopt_forget_command(struct tenant *tenant);

/* Stops waiting for any old process of the tenant, and for its command. */
void adopt_forget_all(struct tenant *tenant);
