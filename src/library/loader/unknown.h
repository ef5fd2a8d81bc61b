/*
 * Entries of the driver that driver_table.h does not know, of a name that it governs in other forms: a
 * cuMemAlloc_v9 of a newer driver. Passed in silence, each would be a hole in the quotas. Policy: they
 * are not there, or with ALLOT_UNKNOWN=pass they are; either way the log names each.
 *
 * cuGetProcAddress answers "not found". dlsym must hand out an address, since its caller has seen that
 * the symbol exists: a function that answers CUDA_ERROR_NOT_FOUND, as one that the driver lacks.
 *
 * Thread safe. Without a tenant nothing is unknown.
 */
#pragma once

#include <stdbool.h>

/* Whether an entry of that name is to be refused; logs it. The name's base is governed. */
bool unknown_is_refused(const char *name);

/*
 * Remembers the driver's `address` for a name that dlsym was asked for. What stands in for it, or NULL
 * when there is no more room (then it is refused by no one, and the log says so).
 */
void *unknown_note(const char *name, const void *address);

/* What stands in for an address that was noted, or NULL. */
void *unknown_stand_in(const void *address);
