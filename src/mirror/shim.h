/*
 * A library without code: a 64-bit ELF file that exports nothing and needs other libraries, in order. A
 * program that loads the shim under the driver's name gets those libraries. Symbols are looked up in the first
 * library, and then in the next:
 *
 *     libcuda.so.1 (shim) -> liballot.so (hooks), then libcuda.so.580.159.04 (the driver)
 *
 * The shim has its own SONAME, because liballot.so finds the driver by the driver's SONAME. A RUNPATH of
 * $ORIGIN makes the shim work wherever it is mounted. The shim is a regular file, because ldconfig changes
 * symbolic links.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHIM_SIZE_MAX 4096

/*
 * Writes the file's bytes and returns their number, or 0 if the names are too long. `machine` is the
 * driver's e_machine.
 */
size_t shim_make(uint16_t machine, const char *soname, const char *const needed[2],
		 uint8_t ret_bytes[SHIM_SIZE_MAX]);
