/*
 * The library's settings, read from the environment once, at load: a program that clears its
 * environment later changes nothing.
 */
#pragma once

#include <stdbool.h>

/*
 * Path of the tenant's socket: that of the container that the process is in, else ALLOT_SOCKET's; "": it
 * belongs to no tenant.
 */
const char *config_socket(void);

/* True when a tenant is configured, but in a way that can't be used: refuse the GPU (fail closed). */
bool config_is_unusable(void);

/* ALLOT_UNKNOWN=pass: entries of the driver that this version does not know are passed (unknown.h). */
bool config_passes_unknown(void);

/* Idempotent; called at load and, should a program's constructor be faster, on first use. */
void config_load(void);
