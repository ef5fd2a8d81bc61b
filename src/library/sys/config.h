/*
 * The library's settings, read from the environment once, at load. So nothing changes if a program clears its
 * environment later.
 */
#pragma once

#include <stdbool.h>

/*
 * Returns the path of the tenant's socket: in a tenant's container always the socket in the container, elsewhere the value of
 * ALLOT_SOCKET. The path is empty if the process belongs to no tenant.
 */
const char *config_socket(void);

/* True if a tenant is configured, but in an unusable way. Then refuse the GPU (fail closed). */
bool config_is_unusable(void);

/* True if ALLOT_UNKNOWN=pass, so that driver functions unknown to this version are not hidden (unknown.h). */
bool config_passes_unknown(void);

/* Reads the settings. Idempotent. Called at load, or on first use if a program's constructor runs earlier. */
void config_load(void);
