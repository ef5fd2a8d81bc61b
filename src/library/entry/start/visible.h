/*
 * CUDA_VISIBLE_DEVICES as a program in a tenant means it. Numbers count the tenant's devices, as NVML does in the
 * tenant. A UUID that is not one of the tenant's names no device. If the variable is not set, all of the tenant's
 * devices are visible. The driver itself would count the machine's devices.
 */
#pragma once

#include <stdbool.h>

/*
 * The driver reads the variable when it starts. During that time, the variable names the same devices by UUID. This means the
 * same to any other reader, and to a command that another thread starts. Returns false if nothing was changed; pass the result
 * to visible_end(). Thread safe; if two threads call it at the same time, one changes the variable for both. Needs an active
 * process.
 */
bool visible_begin(void);
void visible_end(bool is_changed);
