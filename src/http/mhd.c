#include "http/mhd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define MHD_ROW(name) { "MHD_" #name, offsetof(struct mhd, name) },
static const struct {
	const char *symbol;
	size_t offset;
} rows[] = { MHD_FUNCTIONS(MHD_ROW) };

int mhd_load(const struct mhd **ret, struct error *err)
{
	static struct mhd mhd;
	void *library = dlopen(MHD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return error_set(err, ENOENT, "serving HTTP needs libmicrohttpd: %s", dlerror());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *function = dlsym(library, rows[i].symbol);
		if (!function)
			return error_set(err, ENOENT, MHD_LIBRARY " lacks %s", rows[i].symbol);
		memcpy((char *)&mhd + rows[i].offset, &function, sizeof(function));
	}
	*ret = &mhd;
	return 0;
}
