/*
 * What every program of these tests does with a GPU once it has found the driver, by whatever way:
 * fills a part of its quota, asks for more than is left, and gives all back. Prints a line each.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef int cu_result;
typedef unsigned long long cu_pointer;
typedef struct cu_context *cu_context;

/* Under a quota of 4 GiB: the first fits, the second does not. */
#define FITS ((size_t)1 << 30)
#define TOO_MUCH ((size_t)8 << 30)

#define USE_FUNCTIONS(ROW) \
	ROW(cuInit, (unsigned int flags)) \
	ROW(cuDevicePrimaryCtxRetain, (cu_context * ret, int device)) \
	ROW(cuDevicePrimaryCtxRelease_v2, (int device)) \
	ROW(cuCtxSetCurrent, (cu_context context)) \
	ROW(cuMemAlloc_v2, (cu_pointer * ret, size_t bytes)) \
	ROW(cuMemFree_v2, (cu_pointer pointer))

#define USE_MEMBER(name, params) cu_result(*name) params;
struct use_driver {
	USE_FUNCTIONS(USE_MEMBER)
};

/* The address of a driver function, or NULL. */
typedef void *use_finder(const char *name);

static inline int use_missing(const char *name)
{
	printf("%s missing\n", name);
	return 1;
}

#define USE_FIND(name, params) \
	if (!(*(void **)&ret->name = find(#name))) \
		return use_missing(#name);

/* 0, or 1 after a line that says what is missing. */
static inline int use_find(use_finder *find, struct use_driver *ret)
{
	USE_FUNCTIONS(USE_FIND)
	return 0;
}

/* A current context on that device; 0, or what the driver said. */
static inline cu_result use_context(const struct use_driver *d, int device)
{
	cu_context context;
	cu_result r = d->cuDevicePrimaryCtxRetain(&context, device);

	return r ? r : d->cuCtxSetCurrent(context);
}

/* 0 when there is a GPU. */
static inline int use_gpu(use_finder *find)
{
	struct use_driver d;
	cu_pointer small = 0, large = 0;

	if (use_find(find, &d))
		return 1;
	cu_result r = d.cuInit(0);
	printf("cuInit %d\n", r);
	if (r)
		return 1;
	if (use_context(&d, 0))
		return use_missing("a context");
	printf("fits %d\n", d.cuMemAlloc_v2(&small, FITS));
	printf("too much %d\n", d.cuMemAlloc_v2(&large, TOO_MUCH));
	printf("free %d\n", d.cuMemFree_v2(small));
	printf("release %d\n", d.cuDevicePrimaryCtxRelease_v2(0));
	return 0;
}

/* By linking with the driver. */
#ifdef LINKED
#define USE_DECLARE(name, params) cu_result name params;
USE_FUNCTIONS(USE_DECLARE)
#define USE_LINKED(name, params) \
	if (strcmp(wanted, #name) == 0) \
		return (void *)name;

static inline void *use_linked(const char *wanted)
{
	USE_FUNCTIONS(USE_LINKED)
	return NULL;
}
#endif
