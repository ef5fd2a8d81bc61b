/*
 * The owner word tells a tenant's processes that the daemon has ended (region.h: owner), even by kill -9. It is a robust
 * futex: the kernel knows it from a list of the thread's (set_robust_list(2)).
 *
 *     head, this thread's ->  link of a tenant -> link of the next -> ...      in private memory
 *                               | futex_offset, the same for all
 *                             owner, in the control page that the tenant reads
 *
 * The links are beside the page and not in it, as libc's mutexes have them: they would tell where the daemon's memory lies.
 * The thread's own list in glibc is given up, as this program has no robust mutex. All calls are of one thread; its end is
 * taken for the daemon's.
 */
#pragma once

#include "abi/shm/region.h"

/* A control page is mapped so that as much is mapped behind it, for its link. */
#define OWNER_LINK_AT 65536 /* whole pages of any machine */
#define OWNER_MAP_BYTES (2 * OWNER_LINK_AT)
_Static_assert(sizeof(struct region_control) <= OWNER_LINK_AT, "the link is behind it");

/* Maps the file `fd` writable at the begin of OWNER_MAP_BYTES, zeros behind it. NULL, with errno. */
void *owner_map(int fd);
/* Until this thread ends, or owner_let_go(). Where the kernel has no such lists the word stays 0. */
void owner_hold(struct region_control *control);
/* Says that the owner has ended. Before it is unmapped. */
void owner_let_go(struct region_control *control);
