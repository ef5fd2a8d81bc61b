/* Memory of the virtual memory API: what its parts (hook_vmm*.c) share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "library/memory/ptrmap.h"
#include "library/sys/sys.h"

/*
 * Guards the counts, and is held over the driver's calls that change them. A handle's value is the
 * driver's to give out again once it is released, though its memory is still mapped; so memory has a
 * number of its own here:
 *     HANDLE    handle value -> number, how often it was obtained
 *     MAPPING   address -> number
 *     PHYSICAL  number -> bytes charged, references: one for its handle, one for each mapping
 *     BINDING   place in a multicast object -> number
 */
SYS_DATA struct sys_lock vmm_lock;

/* The rest with vmm_lock held. Number of what has this key; 0: not known here. */
uint64_t vmm_number_of(enum holding_kind kind, uint64_t key);

uint64_t vmm_new_number(void);

/* Notes memory `number` on a device, and the handle that was just obtained of it. False: no memory. */
bool vmm_note(uint64_t handle, uint64_t number, int device, uint64_t bytes);

/* The handle was obtained once more. */
void vmm_obtain(uint64_t handle, uint64_t number);

/* One reference more or less; at none the memory is gone. */
void vmm_add_reference(uint64_t number, int by);
