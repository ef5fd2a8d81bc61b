/*
 * The owner word, in the control page that the daemon shares with a tenant, tells the tenant's processes that the daemon has
 * ended, even after kill -9. It is a robust futex: the kernel marks it when the thread ends, and finds it through the thread's
 * robust list (set_robust_list(2)).
 *
 *     head, this thread's ->  link of a tenant -> link of another tenant -> ...     in private memory
 *                               | futex_offset, the same for all links
 *                             owner, in the control page that the tenant reads
 *
 * Each link is in private memory behind its control page, so that tenants cannot read the daemon's addresses in the link. This
 * list replaces glibc's robust list for the thread: only robust mutexes need that, and this program has none. Call all
 * functions from one thread. If that thread ends, tenants take the daemon for dead.
 */
#pragma once

#include "abi/shm/region.h"

/* Private memory is mapped directly behind each control page. It holds the page's link in the robust list. */
#define OWNER_LINK_AT 65536 /* a multiple of every machine's page size */
#define OWNER_MAP_BYTES (2 * OWNER_LINK_AT)
_Static_assert(sizeof(struct region_control) <= OWNER_LINK_AT, "the link is behind the page");

/* Maps OWNER_MAP_BYTES: first file `fd`, writable, then zeroed private memory. Returns NULL and sets errno on failure. */
void *owner_map(int fd);
/* Holds until this thread ends or calls owner_release(). The word stays 0 (no owner) if the kernel has no robust lists. */
void owner_hold(struct region_control *control);
/* Tells tenants that the owner has ended. Call before unmapping the page. */
void owner_release(struct region_control *control);
