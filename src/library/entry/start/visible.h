/*
 * CUDA_VISIBLE_DEVICES, as a program in a tenant means it: numbers count the tenant's devices, as NVML in
 * it does; a UUID that is not one of theirs is no device's; unset, it is all of the tenant's. The driver
 * would go by the machine's devices.
 */
#pragma once

/*
 * For the time of the driver's start (it reads the variable there), the entry of the environment is one
 * that names the same devices by UUID. It means the same to whoever reads it meanwhile, and to a
 * command that another thread starts. Returns what visible_end() puts back; NULL: nothing to change.
 * Thread safe; of two at once, one changes it for both. Needs an active process.
 */
char *visible_begin(void);
void visible_end(char *old);
