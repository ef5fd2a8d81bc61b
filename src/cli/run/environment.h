/*
 * The environment of a tenant's command: ours, with some variables set and some paths put in front.
 * The copy is the caller's; nothing here changes our own environment.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct environment {
	char **list; /* NULL-terminated, as execve takes it; every string is ours */
	size_t count;
};

/* Copies `from` (environ). -ENOMEM. */
int environment_copy(char *const *from, struct environment *ret_environment, struct error *err);
void environment_free(struct environment *environment);

/* Sets name=value, in place of the old value if there is one. */
int environment_set(struct environment *environment, const char *name, const char *value,
		    struct error *err);

/* Puts value and ':' before the variable's old value; sets it when it was unset or empty. */
int environment_prepend(struct environment *environment, const char *name, const char *value,
			struct error *err);

/* The value, or NULL. Stays the environment's, and valid until it is changed. */
const char *environment_get(const struct environment *environment, const char *name);
