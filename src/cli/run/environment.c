#include "cli/run/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int no_memory(struct error *err)
{
	return error_set(err, ENOMEM, "out of memory");
}

int environment_copy(char *const *from, struct environment *ret_environment, struct error *err)
{
	struct environment copy = { 0 };
	size_t count = 0;

	while (from[count])
		count++;
	copy.list = calloc(count + 1, sizeof(*copy.list));
	if (!copy.list)
		return no_memory(err);
	for (; copy.count < count; copy.count++) {
		copy.list[copy.count] = strdup(from[copy.count]);
		if (!copy.list[copy.count]) {
			environment_free(&copy);
			return no_memory(err);
		}
	}
	*ret_environment = copy;
	return 0;
}

void environment_free(struct environment *environment)
{
	for (size_t i = 0; i < environment->count; i++)
		free(environment->list[i]);
	free(environment->list);
	*environment = (struct environment){ 0 };
}

static size_t find(const struct environment *environment, const char *name)
{
	size_t length = strlen(name);
	size_t i = 0;

	for (; i < environment->count; i++)
		if (strncmp(environment->list[i], name, length) == 0 &&
		    environment->list[i][length] == '=')
			break;
	return i;
}

const char *environment_get(const struct environment *environment, const char *name)
{
	size_t i = find(environment, name);

	return i < environment->count ? environment->list[i] + strlen(name) + 1 : NULL;
}

int environment_set(struct environment *environment, const char *name, const char *value,
		    struct error *err)
{
	size_t i = find(environment, name);
	cleanup_free char *entry = NULL;

	if (asprintf(&entry, "%s=%s", name, value) < 0) {
		entry = NULL;
		return no_memory(err);
	}
	if (i == environment->count) {
		char **list = realloc(environment->list, (i + 2) * sizeof(*list));

		if (!list)
			return no_memory(err);
		list[i + 1] = NULL;
		environment->list = list;
		environment->count++;
	} else {
		free(environment->list[i]);
	}
	environment->list[i] = steal_pointer(&entry);
	return 0;
}

int environment_prepend(struct environment *environment, const char *name, const char *value,
			struct error *err)
{
	const char *old = environment_get(environment, name);
	cleanup_free char *joined = NULL;

	if (!old || !*old)
		return environment_set(environment, name, value, err);
	if (asprintf(&joined, "%s:%s", value, old) < 0) {
		joined = NULL;
		return no_memory(err);
	}
	return environment_set(environment, name, joined, err);
}
