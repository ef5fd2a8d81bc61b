/*
 * Finds symbols of loaded objects by reading their ELF tables. The library cannot import dlsym, dlvsym or dlopen for that: musl
 * has no dlvsym, a search for dlsym would find this library's own, and the symbols' versions differ between versions of glibc.
 *
 * Thread safe (dl_iterate_phdr locks the loader's list of objects). Allocates nothing. Sees only the linker namespace into
 * which this library was loaded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The pointers are valid while the object stays loaded. */
struct elf_object {
	uintptr_t base;
	const void *symbols; /* DT_SYMTAB */
	const char *strings; /* DT_STRTAB */
	const uint32_t *gnu_hash, *sysv_hash;
	const uint16_t *versions; /* DT_VERSYM, may be NULL */
	const char *soname;       /* may be NULL */
};

/* Finds the first object with this SONAME. The SONAME of an object without one is its file name. */
bool elf_find_object(const char *soname, struct elf_object *ret_object);

/* Returns the function or variable `name` that the object defines, or NULL. */
void *elf_symbol(const struct elf_object *object, const char *name);

/* `gnu_hash` is name_gnu_hash() (name.h) of the name. */
void *elf_symbol_hashed(const struct elf_object *object, const char *name, uint32_t gnu_hash);

/* Returns the first definition in load order behind the object that contains `self`, as RTLD_NEXT does, or NULL. */
void *elf_next_symbol(const void *self, const char *name);

/*
 * As elf_next_symbol() behind this library. Does not call dl_iterate_phdr, which a thread sanitizer may have replaced by a
 * function that is not ready yet. Reads the loader's list without its lock, so use this only for a process's first lookup.
 */
void *elf_next_symbol_early(const char *name);

/* Returns the first definition in any object except that of `self`. */
void *elf_any_symbol(const void *self, const char *name);

/*
 * Returns the loader function behind this library's of the same name: the next in search order or, if libdl was loaded before
 * this library, any other. Caches the result in *slot. NULL if there is none.
 */
void *elf_real_function(void **slot, const char *name);

/* `handle` is of dlopen, not RTLD_DEFAULT or RTLD_NEXT. It points to a struct link_map or, in musl, to the same members. */
bool elf_object_of_handle(const void *handle, struct elf_object *ret_object);

/* Finds the first object in the linker namespace of `handle`. False if that is the program's own namespace. */
bool elf_first_of_namespace(const void *handle, struct elf_object *ret_object);

/* The number of objects from that of `handle` to the end of its namespace. */
size_t elf_objects_from(const void *handle);

/* Finds the object that contains a code address. *ret_is_before_us: the loader searches that object before this library. */
bool elf_object_holding(const void *address, struct elf_object *ret_object, bool *ret_is_before_us);

bool elf_is_own(const void *address);

/* False if this library was loaded by dlmopen. */
bool elf_is_in_first_namespace(void);

const char *elf_own_path(void);
