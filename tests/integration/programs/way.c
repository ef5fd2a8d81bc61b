/*
 * way NAME [FILE]: finds the driver in the way of that name, and uses it. FILE: a plugin, or a second
 * copy of the driver.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "use.h"

static void *driver;

static void *by_dlsym(const char *name)
{
	return dlsym(driver, name);
}

#ifdef __GLIBC__ /* what musl does not have */
static void *by_dlvsym(const char *name)
{
	/* The driver has no versions; a program that asks for one gets what the libc says. */
	return dlvsym(driver, name, "GLIBC_2.2.5");
}
#endif

static void *by_default(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

/* As the CUDA runtime does, also when it is linked statically: the rest by cuGetProcAddress. */
static void *by_proc_address(const char *name)
{
	cu_result (*get)(const char *, void **, int, unsigned long long,
			 int *) = (cu_result(*)(const char *, void **, int, unsigned long long,
						int *))dlsym(driver, "cuGetProcAddress_v2");
	void *function = NULL;
	char plain[64];
	int status;

	if (!get)
		return NULL;
	/* It wants the name without its version. */
	snprintf(plain, sizeof(plain), "%s", name);
	char *suffix = strstr(plain, "_v");
	if (suffix)
		*suffix = '\0';
	return get(plain, &function, 12000, 0, &status) ? NULL : function;
}

static int use_library(void *library, use_finder *find)
{
	driver = library;
	if (driver)
		return use_gpu(find);
	printf("refused: %s\n", dlerror());
	return 1;
}

static int use_plugin(void *plugin)
{
	int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_run") : NULL;

	if (run)
		return run();
	printf("refused: %s\n", dlerror());
	return 1;
}

#define CUDA "libcuda.so.1"

static int local(const char *file)
{
	return use_library(dlopen(CUDA, RTLD_NOW | RTLD_LOCAL), by_dlsym);
}

static int global(const char *file)
{
	return use_library(dlopen(CUDA, RTLD_LAZY | RTLD_GLOBAL), by_default);
}

static int proc_address(const char *file)
{
	return use_library(dlopen(CUDA, RTLD_NOW), by_proc_address);
}

/* The second copy is opened and asked first, the driver itself stands beside it. */
static int two_copies(const char *file)
{
	void *first = dlopen(CUDA, RTLD_NOW), *second = dlopen(file, RTLD_NOW);

	if (!first || !second || first == second)
		return use_missing("a second copy");
	return use_library(second, by_dlsym) | use_library(first, by_dlsym);
}

static int one_copy(const char *file)
{
	return use_library(dlopen(file, RTLD_NOW), by_dlsym);
}

static int plugin_local(const char *file)
{
	return use_plugin(dlopen(file, RTLD_NOW | RTLD_LOCAL));
}

#ifdef __GLIBC__
static int deepbind(const char *file)
{
	return use_library(dlopen(CUDA, RTLD_NOW | RTLD_DEEPBIND), by_dlsym);
}

static int versioned(const char *file)
{
	return use_library(dlopen(CUDA, RTLD_NOW), by_dlvsym);
}

static int new_namespace(const char *file)
{
	return use_library(dlmopen(LM_ID_NEWLM, CUDA, RTLD_NOW), by_dlsym);
}

/* One after another, more than a process can have at a time; then two at once, which differ. */
static int many_namespaces(const char *file)
{
	for (int i = 0; i < 40; i++) {
		void *library = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
		if (!library || !dlsym(library, "cos"))
			return use_missing(library ? "cos" : dlerror());
		dlclose(library);
	}
	void *one = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
	void *two = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
	printf("two that differ %d\n", one && two && dlsym(one, "cos") != dlsym(two, "cos"));
	return 0;
}

static int plugin_deepbind(const char *file)
{
	return use_plugin(dlopen(file, RTLD_NOW | RTLD_DEEPBIND));
}

static int plugin_new_namespace(const char *file)
{
	return use_plugin(dlmopen(LM_ID_NEWLM, file, RTLD_NOW));
}
#endif

static const struct {
	const char *name;
	int (*run)(const char *file);
} ways[] = {
	{ "local", local },
	{ "global", global },
	{ "proc-address", proc_address },
	{ "two-copies", two_copies },
	{ "one-copy", one_copy },
	{ "plugin-local", plugin_local },
#ifdef __GLIBC__
	{ "deepbind", deepbind },
	{ "versioned", versioned },
	{ "new-namespace", new_namespace },
	{ "many-namespaces", many_namespaces },
	{ "plugin-deepbind", plugin_deepbind },
	{ "plugin-new-namespace", plugin_new_namespace },
#endif
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
#ifdef LINKED
	if (argc < 2)
		return use_gpu(use_linked);
#endif
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(argv[1], ways[i].name) == 0)
			return ways[i].run(argc > 2 ? argv[2] : NULL);
	return 2;
}
