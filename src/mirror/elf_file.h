/* What the mirror needs to know of a library file. Reads 32- and 64-bit little-endian ELF. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ELF_FILE_NEEDED_MAX 32

/* The strings point into the file's bytes. */
struct elf_file {
	unsigned bits; /* 32 or 64 */
	uint16_t machine;
	const char *soname; /* NULL: has none */
	const char *needed[ELF_FILE_NEEDED_MAX];
	unsigned needed_count;
};

/* 0, or -ENOEXEC when the bytes are no shared library, or one that is damaged. */
int elf_file_read(const void *bytes, size_t size, struct elf_file *ret_file);
