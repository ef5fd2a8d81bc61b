#include "base/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

int symbols_load(const char *library, const char *other, const struct symbol_row *rows,
		 size_t count, void *table, const char *needs, struct error *err)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle && other) {
		library = other;
		handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	}
	if (!handle)
		return error_set(err, ENOENT, "%s: %s", needs, dlerror());
	for (size_t i = 0; i < count; i++) {
		void *function = dlsym(handle, rows[i].symbol);
		if (!function)
			return error_set(
				err, ENOENT,
				"%s has no function %s: its version is too old or too new; install another version of it",
				library, rows[i].symbol);
		memcpy((char *)table + rows[i].offset, &function, sizeof(function));
	}
	return 0;
}
