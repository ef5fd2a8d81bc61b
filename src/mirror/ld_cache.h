/* Parses the contents of the loader's cache, /etc/ld.so.cache, which maps library names to files. Does no I/O. */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* Called for each entry of the cache. A negative result stops the reading, and ld_cache_each() returns it. */
typedef int ld_cache_visitor(void *context, const char *name, const char *path, struct error *err);

/*
 * Calls `visit` for each entry of the cache, in order; `bytes` are the file's contents. Reads the format of glibc 2.2 and newer
 * ("glibc-ld.so.cache1.1"), also if it follows the older format in the same file. Returns -EINVAL if that format is not found,
 * or if an offset points outside the file.
 */
int ld_cache_each(const void *bytes, size_t size, ld_cache_visitor *visit, void *context,
		  struct error *err);
