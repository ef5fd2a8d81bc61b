/*
 * Finds the files that a configuration names (volume_config.h): libraries in the loader's cache, programs along a search path.
 */
#pragma once

#include "mirror/volume_config.h"
#include "mirror/plan.h"

/*
 * Appends the libraries found below `root` ("": the machine's own root) to *files, which the caller frees, also after a
 * failure. Skips names that are not found, because drivers differ, and files that resolve outside of `root`. Returns -ENOENT or
 * -EINVAL if the loader's cache can't be read.
 */
int mirror_find_libraries(const char *root, char *const *names, struct mirror_files *files,
			  struct error *err);

/* Like mirror_find_libraries(), for programs. `search` is a list of directories in the format of PATH. */
int mirror_find_binaries(const char *root, const char *search, char *const *names,
			 struct mirror_files *files, struct error *err);
