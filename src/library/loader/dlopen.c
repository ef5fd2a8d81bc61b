/*
 * Two ways of loading would bypass a preloaded library:
 *
 * With RTLD_DEEPBIND a library finds the driver before this library, so a tenant's process loads without that flag. A namespace
 * made by dlmopen has no preloaded libraries, so a copy of this library is loaded there first: glibc searches a namespace in
 * load order. The copy refuses cuInit (process.c), because a process has one slot and one ledger.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "library/loader/elf_lookup.h"
#include "library/loader/trampoline.h"
#include "library/sys/config.h"
#include "library/sys/locks.h"

typedef void *dlmopen_function(Lmid_t namespace_id, const char *file, int flags);
typedef int dlinfo_function(void *handle, int request, void *ret);

static bool is_tenant(void)
{
	return *config_socket() || config_is_unusable();
}

static uintptr_t without_deepbind(uintptr_t flags)
{
	return is_tenant() ? flags & ~(uintptr_t)RTLD_DEEPBIND : flags;
}

/*
 * Namespaces into which this library was loaded. glibc has only 16, so a namespace is reused once the program has closed
 * everything that it loaded there. Only the thread that last used it reuses it: to other threads, a namespace into which that
 * thread is still loading may look unused.
 */
static struct hooked_namespace {
	const void *own; /* this library's handle there; NULL if the entry is unused */
	size_t objects;  /* number of objects there just after this library was loaded */
	Lmid_t id;
	long thread;
} namespaces[16];

static struct hooked_namespace *find_reusable(long thread)
{
	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
		struct hooked_namespace *f = &namespaces[i];
		if (!f->own || (f->thread == thread && elf_objects_from(f->own) == f->objects))
			return f;
	}
	return NULL;
}

/* On failure, dlerror() gives the reason. */
static bool make_namespace(dlmopen_function *real_dlmopen, struct hooked_namespace *ret)
{
	const char *path = elf_own_path();
	dlinfo_function *info = (dlinfo_function *)elf_any_symbol(&elf_own_path, "dlinfo");

	ret->own = path && info ? real_dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : NULL;
	if (!ret->own || info((void *)(uintptr_t)ret->own, RTLD_DI_LMID, &ret->id) != 0)
		return false;
	ret->objects = elf_objects_from(ret->own);
	return true;
}

static bool find_namespace(dlmopen_function *real_dlmopen, Lmid_t *ret_id)
{
	struct hooked_namespace fresh = { .thread = syscall(SYS_gettid) };

	WITH_LOCK(&locks.namespaces);
	struct hooked_namespace *place = find_reusable(fresh.thread);
	if (place && place->own) {
		*ret_id = place->id;
		return true;
	}
	if (!make_namespace(real_dlmopen, &fresh))
		return false;
	*ret_id = fresh.id;
	if (place)
		*place = fresh;
	return true;
}

TRAMPOLINE_FILTER allot_filter_dlopen(uintptr_t argument[4]);
TRAMPOLINE_FILTER allot_filter_dlopen(uintptr_t argument[4])
{
	static void *real_dlopen;

	argument[1] = without_deepbind(argument[1]);
	return trampoline_jump(elf_real_function(&real_dlopen, "dlopen"));
}

TRAMPOLINE_FILTER allot_filter_dlmopen(uintptr_t argument[4]);
TRAMPOLINE_FILTER allot_filter_dlmopen(uintptr_t argument[4])
{
	static void *real_dlmopen;
	void *real = elf_real_function(&real_dlmopen, "dlmopen");
	Lmid_t id = (Lmid_t)argument[0];

	if (real && id == LM_ID_NEWLM && is_tenant() &&
	    !find_namespace((dlmopen_function *)real, &id))
		return trampoline_return(NULL);
	argument[0] = (uintptr_t)id;
	argument[2] = without_deepbind(argument[2]);
	return trampoline_jump(real);
}

TRAMPOLINE(dlopen)
TRAMPOLINE(dlmopen)
