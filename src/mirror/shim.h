/*
 * A code-free library: 64-bit ELF that exports nothing and needs others, in an order. Who loads it
 * under the driver's name gets those, and finds in the first of them what it has, in the next what the
 * first has not:
 *
 *     libcuda.so.1 (shim) -> liballot.so (hooks), then libcuda.so.580.159.04 (the driver)
 *
 * It has a SONAME of its own, so that liballot.so, which knows the driver by its SONAME, finds the
 * driver; and a RUNPATH of $ORIGIN, so that it works wherever it is mounted. A regular file: ldconfig
 * re-points symbolic links.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHIM_SIZE_MAX 4096

/*
 * Writes the file's bytes and returns their number; 0 when the names are too long for it. `machine` is
 * the driver's e_machine.
 */
size_t shim_make(uint16_t machine, const char *soname, const char *const needed[2],
		 uint8_t ret_bytes[SHIM_SIZE_MAX]);
