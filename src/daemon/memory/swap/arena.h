/*
 * A swap arena is a memory file of one tenant, into which the tenant's library copies the memory that it takes off the GPU.
 * This is the daemon's side. A thread allocates the file's pages in advance (backs the file), so that no eviction lacks memory.
 * arena_ready_bytes in the region's control half says how much is backed. Each tenant gets a new, zeroed file, so it sees no
 * other tenant's data.
 *
 * The pages are charged to the daemon's memory cgroup or, with setting swap_arena_charge, to the tenant's. In the second case,
 * a child process enters the tenant's cgroup and backs the file. It stops before the cgroup's limit, because the kernel kills
 * processes of a cgroup that reaches its limit.
 */
#pragma once

#include "abi/shm/region.h"
#include "base/error.h"

struct arena;

/* How much host memory all arenas together may have if swap_arena is not set: half of the machine's memory. */
uint64_t arena_default_budget(void);

/* Host memory is never overcommitted: -ENOSPC if `bytes` are not available besides other arenas' pending_bytes. */
int arena_check_memory(uint64_t bytes, uint64_t pending_bytes, struct error *err);

/*
 * Makes the file, without pages, and writes its size to control->arena_bytes. `is_tenants`: the tenant is charged for the
 * pages. `control` must outlive the arena. *ret is written only on success.
 */
int arena_new(uint64_t bytes, struct region_control *control, bool is_tenants, struct arena **ret,
	      struct error *err);

/*
 * Begins to allocate the pages, or goes on where an earlier attempt failed. Call when the tenant's process `pid` registers,
 * since a tenant without processes needs no host memory. If the tenant is charged for the pages, the cgroup of `pid` is.
 * `tenant` is for the log. Main thread.
 */
void arena_back(struct arena *arena, int pid, const char *tenant);

/* The file lasts until its last mapping ends. NULL is allowed; returns NULL. */
struct arena *arena_free(struct arena *arena);

/* The file's descriptor, to send to the tenant's processes. The arena keeps it. */
int arena_fd(const struct arena *arena);
/* The bytes of pages still to be allocated; 0 also after a failure. */
uint64_t arena_pending_bytes(struct arena *arena);
