/* The environment of a tenant's command: a changed copy of this program's environment. The caller owns the copy. */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct environment {
	char **list; /* NULL-terminated, for execve(); the struct owns every string */
	size_t count;
};

/* Copies `from`, such as environ. Returns 0 or -ENOMEM. */
int environment_copy(char *const *from, struct environment *ret_environment, struct error *err);
void environment_free(struct environment *environment);

int environment_set(struct environment *environment, const char *name, const char *value,
		    struct error *err);

/* Prepends `value` and ':' to the variable, or sets it to `value` if it is unset or empty. */
int environment_prepend(struct environment *environment, const char *name, const char *value,
			struct error *err);

/* Returns NULL if unset. The environment owns the value, which is valid until the next change. */
const char *environment_get(const struct environment *environment, const char *name);
