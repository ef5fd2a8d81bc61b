/* Another interposer: wraps dlsym in C, as tracing and profiling tools do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	return real ? real(handle, name) : NULL;
}

/* And a libc function, found through the wrapped one. */
char *getenv(const char *name)
{
	char *(*real)(const char *) = (char *(*)(const char *))dlsym(RTLD_NEXT, "getenv");

	return real ? real(name) : NULL;
}
