/*
 * Makes a shim: a library without code, a 64-bit ELF file that exports nothing but needs two other libraries, in order. It is
 * placed under the driver's name. A program that loads the shim gets both libraries, and the loader looks a symbol up in the
 * first library before the second:
 *
 *    libcuda.so.1 (shim) -> liballot.so (hooks), then libcuda.so.580.159.04 (the driver)
 *
 * The shim has a SONAME of its own, because liballot.so finds the driver by the driver's SONAME. A RUNPATH of $ORIGIN makes the
 * shim work wherever it is mounted. The shim is a regular file and no symbolic link, because ldconfig changes symbolic links.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHIM_SIZE_MAX 4096

/* Returns the number of bytes, or 0 if the names are too long. `machine` is the driver's ELF machine (e_machine). */
size_t shim_make(uint16_t machine, const char *soname, const char *const needed[2],
		 uint8_t ret_bytes[SHIM_SIZE_MAX]);
