/*
 * Driver functions that driver_table.h lacks although it has another version of the same name: cuMemAlloc_v9 of a newer driver,
 * beside cuMemAlloc_v2. Such a function could bypass the quotas. So the library hides it, unless ALLOT_UNKNOWN=pass; in both
 * cases the log names it.
 *
 * For a hidden function, cuGetProcAddress answers "not found". dlsym must return an address, because its caller has seen that
 * the symbol exists. So dlsym returns a stand-in function, which returns CUDA_ERROR_NOT_FOUND.
 *
 * Thread safe. Without a tenant no function is hidden.
 */
#pragma once

#include <stdbool.h>

/* True if `name` must be hidden; logs it. Call only if real_hooks_form_of(name), and driver_table.h lacks `name`. */
bool unknown_is_refused(const char *name);

/*
 * For the driver's `address` of a name that dlsym looked up. Returns a stand-in, or NULL if the function is not hidden:
 * ALLOT_UNKNOWN allows it, or there is no more room, which the log says.
 */
void *unknown_note(const char *name, const void *address);

/* Returns the stand-in if unknown_note() has recorded `address`, otherwise NULL. */
void *unknown_stand_in(const void *address);
