#include "cli/container_name.h"

#include <stdio.h>

static const char *text_of(const json_t *container, const char *key)
{
	const char *text = json_string_value(json_object_get(container, key));
	return text ? text : "";
}

void container_name(const json_t *container, char *text, size_t size)
{
	const char *name = text_of(container, "name"), *pod = text_of(container, "pod");
	if (*pod)
		snprintf(text, size, "%s/%s/%s", text_of(container, "namespace"), pod, name);
	else
		snprintf(text, size, "%s", name);
}

void container_label(const json_t *container, char *text, size_t size)
{
	container_name(container, text, size);
	if (!*text)
		snprintf(text, size, "%.*s", CONTAINER_SHORT_ID, text_of(container, "id"));
}
