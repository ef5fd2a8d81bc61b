/*
 * The library's settings, read once from the environment, at load. A program that clears its environment later changes nothing.
 */
#pragma once

#include <stdbool.h>

/*
 * Returns the path of the tenant's socket: that of the container, or else ALLOT_SOCKET. Empty if the process belongs to no
 * tenant, or if the path is too long (config_is_unusable()).
 */
const char *config_socket(void);

/* True if the socket's path is too long; then refuse the GPU. */
bool config_is_unusable(void);

/* True if ALLOT_UNKNOWN=pass: then the library does not hide driver functions that it does not know (unknown.h). */
bool config_passes_unknown(void);

/* Reads the settings. Called at load, or on first use if a program's constructor runs earlier. Later calls do nothing. */
void config_load(void);
