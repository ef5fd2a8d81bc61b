/*
 * What is known about the names for which a program can ask cuGetProcAddress (driver_decisions.h,
 * driver_versions.h): which functions pass unchanged, and what the driver would answer. So the driver need not be
 * asked. Its answers would be the same: driver_versions.h says how we know, and tests/gpu/run --only answers
 * compares all of them on a GPU. A runtime asks for some 500 names, and the driver takes longer than this table.
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
 * Looks up the functions of a driver that was just loaded, after real.c has found the hooked ones. It looks up
 * all at once, because the first access to a page of the driver's tables costs as much as 100 lookups.
 * hook_of_row(row) returns our hook for a row of DRIVER_TABLE, counted from 0, or NULL if this driver has no such
 * function. May run before libc is ready; not in two threads at once.
 */
void known_fill(const struct elf_object *driver, void *(*hook_of_row)(size_t row));

/* True if the base name with this hash (name.h) is hooked, in any form. */
bool known_is_governed(uint64_t hash);

/*
 * The driver's own functions that pass unchanged, indexed by the numbers in names.h; NULL if the driver lacks the
 * function.
 */
SYS_DATA void *known_passed[];

enum known_answer {
	/* Only the driver can tell, for example if the version is newer than the tables or the driver. */
	KNOWN_NOT,
	KNOWN_FOUND,  /* *ret_function is set: our hook, or else the driver's function */
	KNOWN_TOO_NEW /* the driver has the name only in newer versions than the one asked for */
};

/* Tells what the driver would answer for the name with this hash. */
enum known_answer known_ask(uint64_t hash, int version, cuuint64_t flags, void **ret_function);
