#include "kube/client/curl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define CURL_ROW(name) { "curl_" #name, offsetof(struct curl, name) },
static const struct {
	const char *symbol;
	size_t offset;
} rows[] = { CURL_FUNCTIONS(CURL_ROW) };

/* With OpenSSL, else with GnuTLS: a machine may have either. */
static const char *const libraries[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

static void *open_library(const char **ret_name)
{
	void *library = NULL;
	for (size_t i = 0; !library && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
		*ret_name = libraries[i];
	}
	return library;
}

int curl_load(const struct curl **ret, struct error *err)
{
	static struct curl curl;
	static bool is_ready;
	const char *name = "";
	void *library = is_ready ? NULL : open_library(&name);
	if (!is_ready && !library)
		return error_set(err, ENOENT, "the Kubernetes API needs libcurl: %s", dlerror());
	for (size_t i = 0; !is_ready && i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *function = dlsym(library, rows[i].symbol);
		if (!function)
			return error_set(err, ENOENT, "%s lacks %s", name, rows[i].symbol);
		memcpy((char *)&curl + rows[i].offset, &function, sizeof(function));
	}
	if (!is_ready && curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return error_set(err, EIO, "%s can't be initialized", name);
	is_ready = true;
	*ret = &curl;
	return 0;
}
