/*
 * CUDA_VISIBLE_DEVICES in a tenant: its numbers count the tenant's devices, and UUIDs of other devices match nothing. If it is
 * unset, the program gets all of the tenant's devices. The driver itself would count the machine's devices.
 */
#pragma once

#include <stdbool.h>

/*
 * Call before the driver starts: rewrites the variable to UUIDs, which mean the same to the driver and to other readers.
 * Returns false if nothing was changed, as when the driver has started or the process has joined no tenant. Pass the result to
 * visible_end(). Thread safe: of two threads that call this at the same time, one changes the variable for both.
 */
bool visible_begin(void);
void visible_end(bool is_changed);
