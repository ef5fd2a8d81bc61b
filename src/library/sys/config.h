/* The library's settings, read once from the environment, at load. Later changes of the environment have no effect. */
#pragma once

#include <stdbool.h>

/* The path of the tenant's socket, in a container or from ALLOT_SOCKET. Empty without a tenant, or if it is too long. */
const char *config_socket(void);

/* The socket's path is too long; then refuse the GPU. */
bool config_is_unusable(void);

/* ALLOT_UNKNOWN=pass: the library does not hide driver functions that it does not know (unknown.h). */
bool config_passes_unknown(void);
