/*
 * DRIVER(cuMemCreate)(...): a function of the driver API, looked up in libcuda.so.1 at run time, so
 * that a sample links with nothing. The name is the one that cuda.h makes of it (cuMemAlloc_v2).
 */
#pragma once

#include <dlfcn.h>

#include "sample.cuh"

inline void *driver_symbol(const char *name)
{
	static void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void *address = library ? dlsym(library, name) : nullptr;

	expect(address != nullptr, name);
	return address;
}

#define DRIVER_TEXT(symbol) #symbol
#define DRIVER(symbol) ((decltype(&symbol))driver_symbol(DRIVER_TEXT(symbol)))
