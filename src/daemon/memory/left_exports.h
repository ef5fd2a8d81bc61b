/*
 * GPU memory of an ended process that a descriptor keeps: the process exported it, and another process has the descriptor, or
 * a socket's queue has it. NVML lists such memory for no process. It is charged to the tenant, as part of unslotted_bytes,
 * until the last descriptor is closed (abi/shm/fd_tag_format.h) or a live process is charged for it (region_export), such as
 * an importer.
 *
 * Begins anew with each daemon: memory that was left under an earlier daemon is charged to nobody. If /proc/locks can't be
 * read, the last known state stays. Main thread only.
 */
#pragma once

#include <stdbool.h>

struct census_card;
struct node;
struct tenant;

/* Handlers of the events process_gone, census_read and tenant_removed (subsystem.h). */
void left_exports_process_gone(struct tenant *tenant, int pid, unsigned slot);
void left_exports_update(struct node *node, const struct census_card *seen);
void left_exports_forget(struct tenant *tenant);
/* Returns true if memory is left, so that the next census must take place. */
bool left_exports_are_any(const struct node *node);
