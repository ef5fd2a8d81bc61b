/*
 * The daemon's side of a tenant's swap arena: a memory file of one tenant, into which its library
 * copies what it takes off the card. A thread of the daemon allocates the file's pages in advance
 * (backs the file), so that no eviction fails for lack of memory; the control page says how much is
 * backed. Each tenant gets a new, zeroed file, so it sees no other tenant's data.
 *
 * The pages are charged to the daemon's memory cgroup or, with setting swap_arena_charge, to the
 * tenant's. In the second case, a child process enters the tenant's cgroup and backs the file. It
 * stops before the cgroup's limit, where the kernel would kill.
 */
#pragma once

#include "abi/shm/region.h"
#include "base/error.h"

struct arena;

/*
 * Returns how many bytes all arenas together may have if setting swap_arena is not set: half of the
 * machine's memory.
 */
uint64_t arena_default_budget(void);

/*
 * Returns -ENOSPC if the machine has less than `bytes` available now, beside what other arenas are
 * still to be backed with (pending_bytes). So host memory is never overcommitted.
 */
int arena_check_memory(uint64_t bytes, uint64_t pending_bytes, struct error *err);

/*
 * Makes the file and writes its size to control->arena_bytes. If `is_tenants` is false, also starts
 * backing it; if true, the file is charged to the tenant: see arena_charge_to(). `control` must
 * outlive the arena. *ret is written only on success.
 */
int arena_new(uint64_t bytes, struct region_control *control, bool is_tenants, struct arena **ret,
	      struct error *err);

/*
 * Starts backing an arena that is charged to its tenant, or continues if backing stopped early; the
 * reason is then logged with the tenant's name. `pid` is a process of the tenant, whose cgroup is
 * charged. Does nothing for other arenas. Main thread.
 */
void arena_charge_to(struct arena *arena, int pid, const char *tenant);

/*
 * Stops backing and closes the file, which lasts until its last mapping ends. NULL is allowed;
 * returns NULL.
 */
struct arena *arena_free(struct arena *arena);

/*
 * Returns the file's descriptor, to be sent to the tenant's processes. The arena keeps ownership.
 */
int arena_fd(const struct arena *arena);
/* Returns how many bytes are still to be backed; 0 also if backing has failed. */
uint64_t arena_pending_bytes(struct arena *arena);
