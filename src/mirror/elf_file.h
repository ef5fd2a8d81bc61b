/* Parses a library file's bytes for a mirror (plan.h). Reads 32- and 64-bit little-endian ELF. Does no I/O. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ELF_FILE_NEEDED_MAX 32

/* The strings point into the file's bytes. */
struct elf_file {
	unsigned bits;
	uint16_t machine;
	const char *soname; /* NULL if there is none */
	const char *needed[ELF_FILE_NEEDED_MAX];
	unsigned needed_count;
};

/* Returns -ENOEXEC if the bytes are not a shared library, or are damaged. */
int elf_file_read(const void *bytes, size_t size, struct elf_file *ret_file);
