/*
 * Driver functions that driver_table.h does not list, although it lists other forms of the name: for example a
 * cuMemAlloc_v9 of a newer driver. If such a function passed silently, it would be a hole in the quotas. So the
 * library hides it, or lets it pass if ALLOT_UNKNOWN=pass; in both cases the log names it.
 *
 * For a hidden function, cuGetProcAddress answers "not found". dlsym must return an address, since its caller has
 * seen that the symbol exists. So it returns a stand-in that answers CUDA_ERROR_NOT_FOUND, as for a function that
 * the driver lacks.
 *
 * Thread safe. Without a tenant no function is hidden.
 */
#pragma once

#include <stdbool.h>

/* True if the function of that name must be hidden; in a tenant, logs the name. The name's base must be hooked. */
bool unknown_is_refused(const char *name);

/*
 * Records the driver's `address` for a name that dlsym looked up. Returns a stand-in, or NULL if the function is
 * not hidden, because ALLOT_UNKNOWN allows it or there is no more room. The log says so.
 */
void *unknown_note(const char *name, const void *address);

/* Returns the stand-in for a recorded address, or NULL. */
void *unknown_stand_in(const void *address);
