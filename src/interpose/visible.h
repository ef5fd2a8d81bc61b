/*
 * CUDA_VISIBLE_DEVICES with numbers, as a program in a tenant means them: they count the tenant's
 * devices, as NVML in it does. The driver would count the machine's.
 */
#ifndef ALLOT_INTERPOSE_VISIBLE_H
#define ALLOT_INTERPOSE_VISIBLE_H

/*
 * For the time of the driver's start (it reads the variable there), the entry of the environment is one
 * that names the same devices by UUID. It means the same to whoever reads it meanwhile, and to a
 * command that another thread starts. Returns what visible_end() puts back; NULL: nothing to change.
 * Thread safe; of two at once, one changes it for both. Needs an active guest.
 */
char *visible_begin(void);
void visible_end(char *old);

#endif
