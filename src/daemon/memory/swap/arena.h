/*
 * The daemon's side of a tenant's swap arena: one memory file, the tenant's alone, into which its library
 * copies what it takes off the card. All of it is backed by memory ahead, by a thread, so that no eviction
 * ends for want of a page; how far that is stands in the control page. Made anew for each tenant and so
 * all zero: no tenant sees what was another's. The memory is charged to the daemon's memory cgroup, or, by the
 * setting swap_arena_charge, to the tenant's: then a child process goes there and backs it, and stops before the
 * cgroup is at its limit, where the kernel would kill.
 */
#pragma once

#include "abi/shm/region.h"
#include "base/error.h"

struct arena;

/*
 * Bytes that all arenas of this machine's daemon may have together where the setting swap_arena says
 * nothing: half of its memory.
 */
uint64_t arena_default_budget(void);

/*
 * -ENOSPC when the machine has not so much memory available now, beside what other arenas have yet to be
 * backed with (pending_bytes): host memory is never overcommitted.
 */
int arena_check_memory(uint64_t bytes, uint64_t pending_bytes, struct error *err);

/*
 * Makes the file and writes its size to control->arena_bytes; begins to back it, but for one that is charged to
 * the tenant. `control` must outlive it. *ret is written only on success.
 */
int arena_new(uint64_t bytes, struct region_control *control, bool is_tenants, struct arena **ret,
	      struct error *err);

/*
 * Of one that is charged to the tenant: `pid` is a process of it. Begins to back it, or goes on where that came to an
 * end too early; what that was is logged with the tenant's name. Otherwise nothing. Main thread.
 */
void arena_charge_to(struct arena *arena, int pid, const char *tenant);

/* The file goes with its last mapping. NULL is fine; returns NULL. */
struct arena *arena_free(struct arena *arena);

/* The descriptor that processes get; stays the arena's. */
int arena_fd(const struct arena *arena);
/* Bytes that it is yet to be backed with; 0 as well when that has failed. */
uint64_t arena_pending_bytes(struct arena *arena);
