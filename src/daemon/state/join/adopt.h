/*
 * Adoption after a restart: makes the previous daemon's tenants again from their state files. Each
 * gets new memory files and its socket. Its processes notice that the heartbeat stopped, register
 * again and copy their usage into their new slots (slot.migrated).
 *
 * control.adopting holds back new reservations until all live processes have moved, or until
 * config.adopt_wait_ns has passed. Until a process has moved or died, its usage in the state file
 * counts as unslotted. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;
struct tenant;

/*
 * Adopts every tenant that it can and returns their number. Others are logged and left as they are.
 */
unsigned adopt_all(struct node *node);

/*
 * Call when a process has registered. With from_before, it will copy its old usage. Without, it has
 * executed a new program (exec), so its old usage is dropped.
 */
void adopt_registered(struct tenant *tenant, int pid, unsigned slot, bool from_before);

/* Whether any tenant still waits for a process of the previous daemon. */
bool adopt_is_anybody_expected(const struct node *node);

/* Whether the tenant still waits for the process of that pid. */
bool adopt_is_expected(const struct tenant *tenant, int pid);

/* A slot was freed. If a process was moving into it, adoption waits for that process again. */
void adopt_slot_gone(struct tenant *tenant, int pid, unsigned slot);

/* Handler of node->adopt_timer. `data` is the node. */
void adopt_look(void *data, uint32_t events);

/*
 * Stops waiting for the tenant's command: the command, or another client, holds the tenant again.
 */
void adopt_forget_command(struct tenant *tenant);

/* Stops waiting for all old processes of the tenant and for its command. */
void adopt_forget_all(struct tenant *tenant);
