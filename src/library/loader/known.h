/*
 * What is known of the names that cuGetProcAddress can be asked for (driver_decisions.h, driver_versions.h):
 * which are passed, and what the driver answers, told without asking it. It would answer the same
 * (driver_versions.h says how that is known; tests/gpu/run --only answers compares all of it on a GPU), and
 * being asked for each of some 500 names it takes longer than we do.
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
 * Looks up the functions of a driver that was loaded, after real.c has found the governed ones: all at
 * once, since each page of its tables costs as much as 100 look-ups when it is first touched. `hook_of_row`: our
 * hook of a row of DRIVER_TABLE, counted from 0; NULL: this driver has no such function. May run
 * before libc is ready; not in two threads at once.
 */
void known_fill(const struct elf_object *driver, void *(*hook_of_row)(size_t row));

/* Whether a base name with that hash (name.h) is governed, in whatever form. */
bool known_is_governed(uint64_t hash);

/* The driver's own functions of those that are passed, by the numbers in names.h; NULL: it has no such function. */
SYS_DATA void *known_passed[];

enum known_answer {
	KNOWN_NOT, /* only the driver can tell: a version beyond the tables or the driver's own, ... */
	KNOWN_FOUND,  /* *ret_function: our hook where there is one, else the driver's */
	KNOWN_TOO_NEW /* the driver has the name, but not since so long ago */
};

/* What the driver would answer for the name with that hash. */
enum known_answer known_ask(uint64_t hash, int version, cuuint64_t flags, void **ret_function);
