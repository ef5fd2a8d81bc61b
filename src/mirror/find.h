/* Looks the configured names up: libraries in the loader's cache, programs along a search path. */
#pragma once

#include "mirror/config.h"
#include "mirror/plan.h"

/*
 * Appends what is found below `root` ("": the machine's own) to *files, which the caller frees also
 * after a failure. A name that leads nowhere is passed over: drivers differ in what they have; so is a
 * file that leads out of `root`. -ENOENT or -EINVAL when the cache can't be read.
 */
int mirror_find_libraries(const char *root, char *const *names, struct mirror_files *files,
			  struct error *err);

/* `search`: as PATH. */
int mirror_find_binaries(const char *root, const char *search, char *const *names,
			 struct mirror_files *files, struct error *err);
