/*
 * Finds symbols of loaded objects by reading their ELF tables. This replaces dlsym, dlvsym and dlopen, none of
 * which the library may import: musl has no dlvsym, our hook replaces dlsym, and the symbol versions of both
 * differ between glibc versions.
 *
 * Thread safe (dl_iterate_phdr locks the loader's list of objects). Allocates nothing. Sees only the linker namespace into
 * which this library was loaded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A loaded object. The pointers are valid while the object stays loaded. */
struct elf_object {
	uintptr_t base;
	const void *symbols; /* DT_SYMTAB */
	const char *strings; /* DT_STRTAB */
	const uint32_t *gnu_hash, *sysv_hash;
	const uint16_t *versions; /* DT_VERSYM, may be NULL */
	const char *soname;       /* may be NULL */
};

/*
 * Finds the first loaded object whose SONAME is `soname`. If an object has no SONAME, its file name is compared
 * instead. Returns false if there is none.
 */
bool elf_find_object(const char *soname, struct elf_object *ret_object);

/* Returns the address of a function or variable that `object` defines, or NULL. */
void *elf_symbol(const struct elf_object *object, const char *name);

/* As elf_symbol(), for a name whose hash is known (name_gnu_hash() in name.h). */
void *elf_symbol_hashed(const struct elf_object *object, const char *name, uint32_t gnu_hash);

/*
 * Returns the first definition of `name` in load order behind the object that contains `self`, as RTLD_NEXT would.
 * Returns NULL if there is none.
 */
void *elf_next_symbol(const void *self, const char *name);

/*
 * As elf_next_symbol() for the library's own object, but without dl_iterate_phdr, which a thread sanitizer may
 * have replaced without being ready. Reads the loader's list without its lock. Use it only for a process's first
 * lookup.
 */
void *elf_next_symbol_early(const char *name);

/* Returns the first definition in any object except the one that contains `self`. */
void *elf_any_symbol(const void *self, const char *name);

/*
 * Returns the loader function that our function of the same name hides: the next definition in search order, which may be
 * another interposer's, or else (if libc's libdl was loaded before us) any other definition. The result is cached in *slot.
 * Returns NULL if this process has none.
 */
void *elf_behind(void **slot, const char *name);

/*
 * Finds the object of a dlopen handle, but not of RTLD_DEFAULT or RTLD_NEXT. (glibc's handle is its struct
 * link_map; musl's begins with the same members.)
 */
bool elf_object_of_handle(const void *handle, struct elf_object *ret_object);

/*
 * Finds the first object of the linker namespace to which `handle` belongs. Returns false if that is the program's
 * own namespace.
 */
bool elf_first_of_namespace(const void *handle, struct elf_object *ret_object);

/* Returns the number of objects from that of `handle` to the end of its namespace. */
size_t elf_objects_from(const void *handle);

/*
 * Finds the object that contains a code address. Sets *ret_is_before_us if the loader searches that object before
 * ours.
 */
bool elf_object_holding(const void *address, struct elf_object *ret_object, bool *ret_is_before_us);

/* True if the address is in this library. */
bool elf_is_own(const void *address);

/* True if this library is in the program's own namespace, so it was not loaded by dlmopen. */
bool elf_is_in_first_namespace(void);

/* Returns the path from which this library was loaded; NULL if unknown. */
const char *elf_own_path(void);
