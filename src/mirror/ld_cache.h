/* The loader's cache, /etc/ld.so.cache: which file each library name stands for. Pure. */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* Returns < 0 to end the reading with that result. */
typedef int ld_cache_visitor(void *context, const char *name, const char *path, struct error *err);

/*
 * Calls `visit` for each entry of the cache file's bytes, in order. Reads the format of glibc 2.2 and
 * newer ("glibc-ld.so.cache1.1"), also behind the older one in the same file. -EINVAL when there is
 * none, or when it points outside itself.
 */
int ld_cache_each(const void *bytes, size_t size, ld_cache_visitor *visit, void *context,
		  struct error *err);
