/*
 * The driver's answers to cuGetProcAddress for the names that allot knows (driver_versions.h says where they come from), and
 * the addresses of functions that are not hooked. A runtime asks for some 500 names, and this table is faster than the driver.
 * tests/gpu/run --only answers compares the table with a driver.
 *
 * Thread safe; allocates nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "library/loader/elf_lookup.h"
#include "library/sys/sys.h"

/*
 * Looks up all functions of a driver that was just loaded, and keeps the answers together: the first access to a page of the
 * driver's tables costs as much as 100 lookups. hook_of_row(row) returns the hook for a row of DRIVER_TABLE (from 0), or NULL
 * if this driver lacks the function. May run before libc is ready; not in two threads at once.
 */
void known_fill(const struct elf_object *driver, void *(*hook_of_row)(size_t row));

/* `hash` is of a base name (name.h). True if a version or stream variant of it is hooked. */
bool known_is_hooked(uint64_t hash);

/* Indexed by the numbers in names.h; NULL if the driver lacks the function. */
SYS_DATA void *known_passed[];

enum known_answer {
	KNOWN_NOT,    /* the table has no answer, so ask the driver */
	KNOWN_FOUND,  /* *ret_function is the hook, or the driver's function if there is none */
	KNOWN_TOO_NEW /* the driver has the name, but only in CUDA versions above `version` */
};

enum known_answer known_look_up(uint64_t hash, int version, cuuint64_t flags, void **ret_function);
