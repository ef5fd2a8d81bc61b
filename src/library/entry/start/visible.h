/*
 * CUDA_VISIBLE_DEVICES as a program in a tenant means it: numbers count the tenant's devices, and other devices have no UUID.
 * Unset means all of the tenant's devices. The driver itself would count the machine's devices.
 */
#pragma once

#include <stdbool.h>

/*
 * While the driver starts, the variable has the devices' UUIDs, which mean the same to other readers. Returns false if nothing
 * was changed; pass the result to visible_end(). Thread safe; of two threads at the same time, one changes the variable for
 * both. Needs an active process.
 */
bool visible_begin(void);
void visible_end(bool is_changed);
