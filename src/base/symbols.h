/*
 * Loads a shared library, such as GnuTLS, only when it is needed, and makes a table of pointers to its functions:
 *
 *     #define FUNCTIONS(F) F(global_init) F(init) F(deinit)
 *     #define MEMBER(name) __typeof__(gnutls_##name) *name;
 *     struct tls_library { FUNCTIONS(MEMBER) };
 *     #define ROW(name) SYMBOL_ROW(struct tls_library, gnutls_, name)
 *     static const struct symbol_row rows[] = { FUNCTIONS(ROW) };
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct symbol_row {
	const char *symbol;
	size_t offset;
};

#define SYMBOL_ROW(type, prefix, name) { #prefix #name, offsetof(type, name) },

/*
 * Loads `library` and fills `table`. If `library` can't be loaded and `other` is not NULL, loads `other` instead. The library
 * stays loaded. On -ENOENT the table is unusable, and the error names the missing function, or begins with `needs` if no
 * library could be loaded.
 */
int symbols_load(const char *library, const char *other, const struct symbol_row *rows,
		 size_t count, void *table, const char *needs, struct error *err);
