/*
 * A table of the driver's answers to cuGetProcAddress for the names that allot knows (driver_decisions.h, driver_versions.h).
 * It also has the addresses of the functions that are not hooked. A runtime asks for some 500 names, and this table is faster
 * than the driver. driver_versions.h says where the answers come from; tests/gpu/run --only answers compares them with a
 * driver's.
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
 * driver's tables costs as much as 100 lookups. hook_of_row(row) returns the hook for a row of DRIVER_TABLE (rows count from
 * 0), or NULL if this driver lacks the function. May run before libc is ready; not in two threads at once.
 */
void known_fill(const struct elf_object *driver, void *(*hook_of_row)(size_t row));

/* True if a version or stream variant of the base name with this hash (name.h) is hooked. */
bool known_is_hooked(uint64_t hash);

/* The driver's functions that are not hooked, indexed by the numbers in names.h; NULL if the driver lacks one. */
SYS_DATA void *known_passed[];

enum known_answer {
	/* the table has no answer, so ask the driver */
	KNOWN_NOT,
	KNOWN_FOUND,  /* *ret_function is the hook, or the driver's function if there is no hook */
	KNOWN_TOO_NEW /* the driver has the name, but only in CUDA versions above `version` */
};

/* Answers cuGetProcAddress(name, version, flags) for the name with this hash (name.h). */
enum known_answer known_look_up(uint64_t hash, int version, cuuint64_t flags, void **ret_function);
