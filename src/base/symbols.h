/*
 * A library of the distribution that is loaded only when it is used, as a table of its functions:
 *
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
	size_t offset; /* of its member in the table */
};

#define SYMBOL_ROW(type, prefix, name) { #prefix #name, offsetof(type, name) },

/*
 * Loads `library`, or where that is not there `other` (NULL: there is none), and fills `table`. It stays loaded. -ENOENT with what
 * is missing, behind `needs`; the table is unusable then.
 */
int symbols_load(const char *library, const char *other, const struct symbol_row *rows,
		 size_t count, void *table, const char *needs, struct error *err);
