/* Lookups of hooked functions by dlsym or dlvsym return the hooks. May run before libc is ready: allocators call dlsym. */
#include <dlfcn.h>
#include <stddef.h>

#include "library/loader/elf_lookup.h"
#include "library/loader/real.h"
#include "library/loader/trampoline.h"
#include "library/sys/sys.h"
#include "library/sys/text.h"

typedef void *dlsym_function(void *handle, const char *name);
typedef void *dlvsym_function(void *handle, const char *name, const char *version);

struct query {
	void *handle;
	const char *name;
	const char *version; /* may be NULL */
	const void *caller;  /* return address */
	void *real;          /* the dlsym or dlvsym of libc, or of another interposer */
};

static const char *library_of(const char *name)
{
	if (name[0] == 'c' && name[1] == 'u')
		return "libcuda.so.1";
	return text_begins(name, "nvml") ? "libnvidia-ml.so.1" : NULL;
}

static void *call_real(const struct query *q)
{
	if (q->version)
		return ((dlvsym_function *)q->real)(q->handle, q->name, q->version);
	return ((dlsym_function *)q->real)(q->handle, q->name);
}

/* Looks only in the driver: a search of all objects would find this library's own export. NULL if it is not there. */
static void *hook_if_driver_has(const char *library, const char *name, void *hook)
{
	struct elf_object driver;

	return elf_find_object(library, &driver) && elf_symbol(&driver, name) ? hook : NULL;
}

/* If the `address` that was found is this library's export (forward.c), returns the driver's own function or NULL. */
static void *skip_own_export(const struct query *q, const char *library, void *address)
{
	struct elf_object driver;

	if (!elf_is_own(address))
		return address;
	return elf_find_object(library, &driver) ? elf_symbol(&driver, q->name) : NULL;
}

/*
 * A process may have two files of one driver (by two paths, or a copy that the program brought). Lookups in the second file are
 * answered from the first, which is hooked. Returns `address` for a lookup elsewhere.
 */
static void *symbol_in_first_copy(const struct query *q, const char *library, void *address)
{
	struct elf_object asked, first;

	if (!elf_object_of_handle(q->handle, &asked) || !asked.soname ||
	    !text_equal(asked.soname, library) || !elf_find_object(library, &first) ||
	    first.base == asked.base)
		return address;
	return elf_symbol(&first, q->name);
}

/* For a handle of another namespace (dlmopen), asks the copy of this library there. Returns false for the own namespace. */
static bool look_up_in_namespace(const struct query *q, void *hook, void **ret_address)
{
	struct elf_object first;

	if (!elf_first_of_namespace(q->handle, &first))
		return false;
	dlsym_function *theirs = (dlsym_function *)elf_symbol(&first, "dlsym");
	if (theirs == dlsym)
		return false;
	/* Without a copy of this library nothing could enforce a quota, so no hooked function is found in that namespace. */
	*ret_address = theirs ? theirs(q->handle, q->name) : hook ? NULL : call_real(q);
	return true;
}

/*
 * True if the caller interposes the function q->name itself, and the loader searches the caller after this library. If such a
 * caller got this library's function, the two would call each other for ever. True also if no loaded object contains the
 * caller.
 */
static bool is_later_interposer(const struct query *q)
{
	struct elf_object caller;
	bool is_before_us;

	return !elf_object_holding(q->caller, &caller, &is_before_us) ||
	       (!is_before_us && elf_symbol(&caller, q->name));
}

/*
 * A lookup of dlsym or another hooked function of the loader finds this library's function. But by RTLD_NEXT, an interposer
 * that the loader searches after this library gets the real function. The real dlsym makes this distinction. dlvsym cannot,
 * because this library's functions have no version, so this function compares the search order itself.
 */
static struct trampoline_way look_up_loader(const struct query *q, void *ours)
{
	struct elf_object caller;
	bool is_before_us = false;

	if (q->handle == RTLD_NEXT &&
	    (!q->version || !elf_object_holding(q->caller, &caller, &is_before_us) || !is_before_us))
		return trampoline_jump(q->real);
	if (q->handle != RTLD_NEXT && is_later_interposer(q))
		return trampoline_jump(q->real);
	return trampoline_return(call_real(q) ? ours : NULL);
}

static struct trampoline_way look_up_driver(const struct query *q, const char *library)
{
	void *hook = real_hook_of_name(q->name), *theirs;

	if (!hook && q->handle == RTLD_NEXT)
		return trampoline_jump(q->real);
	if (q->handle == RTLD_NEXT) {
		if (is_later_interposer(q))
			return trampoline_jump(q->real);
		return trampoline_return(hook_if_driver_has(library, q->name, hook));
	}
	void *address = call_real(q);
	if (!address)
		return trampoline_return(NULL);
	if (address == hook)
		return trampoline_return(hook_if_driver_has(library, q->name, hook));
	if (q->handle != RTLD_DEFAULT) {
		if (look_up_in_namespace(q, hook, &theirs))
			return trampoline_return(theirs);
		address = symbol_in_first_copy(q, library, address);
	}
	void *ours = hook ? real_hook_of_address(address) : skip_own_export(q, library, address);
	return trampoline_return(ours || !hook ? ours : address);
}

static void *loader_hook(const char *name)
{
	static const struct {
		const char *name;
		void *hook;
	} all[] = {
		{ "dlsym", (void *)dlsym },
		{ "dlvsym", (void *)dlvsym },
		{ "dlopen", (void *)dlopen },
		{ "dlmopen", (void *)dlmopen },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (text_equal(all[i].name, name))
			return all[i].hook;
	return NULL;
}

static struct trampoline_way look_up(const struct query *q)
{
	if (!q->real) /* This process has no libdl. */
		return trampoline_return(NULL);
	if (!q->name)
		return trampoline_jump(q->real);
	const char *library = library_of(q->name);
	if (unlikely(library))
		return look_up_driver(q, library);
	void *ours = unlikely(text_begins(q->name, "dl")) ? loader_hook(q->name) : NULL;
	return ours ? look_up_loader(q, ours) : trampoline_jump(q->real);
}

TRAMPOLINE_FILTER allot_filter_dlsym(uintptr_t argument[4]);
TRAMPOLINE_FILTER allot_filter_dlsym(uintptr_t argument[4])
{
	static void *real_dlsym;
	const struct query q = {
		.handle = (void *)argument[0],
		.name = (const char *)argument[1],
		.caller = (const void *)argument[3],
		.real = elf_real_function(&real_dlsym, "dlsym"),
	};

	return look_up(&q);
}

TRAMPOLINE_FILTER allot_filter_dlvsym(uintptr_t argument[4]);
TRAMPOLINE_FILTER allot_filter_dlvsym(uintptr_t argument[4])
{
	static void *real_dlvsym;
	const struct query q = {
		.handle = (void *)argument[0],
		.name = (const char *)argument[1],
		.caller = (const void *)argument[3],
		.version = (const char *)argument[2],
		.real = elf_real_function(&real_dlvsym, "dlvsym"),
	};

	return look_up(&q);
}

TRAMPOLINE(dlsym)
TRAMPOLINE(dlvsym)
