/*
 * Symbols of objects that are loaded already, found by reading their ELF tables. Used instead of
 * dlsym, dlvsym and dlopen, none of which the library may import: dlvsym is missing on musl, dlsym
 * is hooked by us, and both change version from one glibc to the next.
 *
 * Thread safe (dl_iterate_phdr locks the list); allocates nothing. Sees the linker namespace that
 * the library itself was loaded into.
 */
#pragma once

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

/* The same, of a name whose hash is known (name_gnu_hash() in name.h). */
void *elf_symbol_hashed(const struct elf_object *object, const char *name, uint32_t gnu_hash);

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

/*
 * The function of the loader's that stands behind ours of the same name: the next definition, as an
 * earlier interposer's would be found; on a libc whose libdl was loaded ahead of us, any other. Kept
 * in *slot. NULL when this process has none.
 */
void *elf_behind(void **slot, const char *name);

/*
 * What a handle of dlopen stands for; not RTLD_DEFAULT or RTLD_NEXT. (glibc's handle is its struct
 * link_map, and musl's begins with the same members.)
 */
bool elf_object_of_handle(const void *handle, struct elf_object *ret_object);

/*
 * The first object of the linker namespace that a handle belongs to, when that is not the program's
 * own namespace; false when it is.
 */
bool elf_first_of_namespace(const void *handle, struct elf_object *ret_object);

/* How many objects there are from that of a handle to the end of its namespace. */
size_t elf_objects_from(const void *handle);

/* The object that holds a code address; *ret_is_before_us: the loader searches it before ours. */
bool elf_object_holding(const void *address, struct elf_object *ret_object, bool *ret_is_before_us);

/* Whether an address is in this library. */
bool elf_is_own(const void *address);

/* True when this library is in the program's own namespace: not loaded by dlmopen. */
bool elf_is_in_first_namespace(void);

/* The path that this library was loaded by; NULL when it can't be told. */
const char *elf_own_path(void);
