/*
 * Symbols of objects that are loaded already, found by reading their ELF tables. Used instead of
 * dlsym, dlvsym and dlopen, none of which the library may import: dlvsym is missing on musl, dlsym
 * is hooked by us, and both change version from one glibc to the next.
 *
 * Thread safe (dl_iterate_phdr locks the list); allocates nothing. Sees the linker namespace that
 * the library itself was loaded into.
 */
#ifndef ALLOT_INTERPOSE_ELF_LOOKUP_H
#define ALLOT_INTERPOSE_ELF_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A loaded object; the pointers stay good while it is loaded. */
struct elf_object {
	uintptr_t base;
	const void *symbols; /* DT_SYMTAB */
	const char *strings; /* DT_STRTAB */
	const uint32_t *gnu_hash, *sysv_hash;
	const uint16_t *versions; /* DT_VERSYM, may be NULL */
	const char *soname;       /* may be NULL */
};

/* Finds the first loaded object whose SONAME (or, lacking one, file name) is `soname`. */
bool elf_find_object(const char *soname, struct elf_object *ret_object);

/* The address of a defined function or object in `object`, or NULL. */
void *elf_symbol(const struct elf_object *object, const char *name);

/*
 * The first definition of `name` in load order after the object that holds `self`, skipping that
 * object: what RTLD_NEXT would mean. NULL when there is none.
 */
void *elf_next_symbol(const void *self, const char *name);

/*
 * As elf_next_symbol() for the library's own object, without dl_iterate_phdr, which may be a thread
 * sanitizer's that is not ready. Reads the loader's list without its lock: for a process's first
 * look-up.
 */
void *elf_next_symbol_early(const char *name);

/* The first definition in any object but the one that holds `self`. */
void *elf_any_symbol(const void *self, const char *name);

#endif
