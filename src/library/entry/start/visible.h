/*
 * CUDA_VISIBLE_DEVICES for a program in a tenant: its numbers count the tenant's devices, and UUIDs of other devices match
 * nothing. If the variable is unset, the program gets all of the tenant's devices. The driver itself would count the machine's
 * devices.
 */
#pragma once

#include <stdbool.h>

/*
 * Call before the driver starts: rewrites the variable to the devices' UUIDs, which mean the same to the driver and to other
 * readers. Returns false if nothing was changed, as when the driver has started or the process has joined no tenant; pass the
 * result to visible_end(). Thread safe: if two threads call this at the same time, one changes the variable for both.
 */
bool visible_begin(void);
void visible_end(bool is_changed);
