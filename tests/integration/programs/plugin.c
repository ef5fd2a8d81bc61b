/* A library that brings its own way to the driver: linked (LINKED), or opened by itself. */
#include <dlfcn.h>

#include "use.h"

int plugin_run(void);

#ifndef LINKED
static void *find_in_plugin(const char *name)
{
	static void *driver;

	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	return driver ? dlsym(driver, name) : NULL;
}
#endif

int plugin_run(void)
{
	/* In a namespace of its own this is another libc, which nobody flushes at the end. */
	setvbuf(stdout, NULL, _IONBF, 0);
#ifdef LINKED
	return use_gpu(use_linked);
#else
	return use_gpu(find_in_plugin);
#endif
}
