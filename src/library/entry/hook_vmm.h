#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "library/memory/ptrmap.h"
#include "library/sys/sys.h"

/*
 * References to memory of the virtual memory API, shared by hook_vmm*.c and hook_multicast.c, and guarded by locks.vmm. Callers
 * of the functions below hold locks.vmm, also during each driver call that changes the references.
 *
 * The driver may reuse the value of a released handle although the memory is still mapped. So the library gives each memory a
 * number of its own:
 *     HANDLE    handle value -> number, and how often the handle was obtained
 *     MAPPING   address -> number
 *     PHYSICAL  number -> bytes charged, and references: one for the handle, one for each mapping and binding
 *     BINDING   place in a multicast object -> number
 */

/* The number of the memory with handle `key` (HOLDING_HANDLE) or mapped at address `key` (HOLDING_MAPPING); 0: unknown. */
uint64_t vmm_number_of(enum holding_kind kind, uint64_t key);

uint64_t vmm_new_number(void);

/* Records memory `number` on a device, and the handle that was just obtained for it. Returns false if out of memory. */
bool vmm_note(uint64_t handle, uint64_t number, int device, uint64_t bytes);

/* Counts that the handle was obtained again. If the handle is new, records it with a reference to memory `number`. */
void vmm_add_handle(uint64_t handle, uint64_t number);

/* Adds a reference to memory `number` if `by` is 1, or removes one if -1. The last reference gives the charge back. */
void vmm_add_reference(uint64_t number, int by);
