#include "cli/container_name.h"

#include <stdio.h>

#include "base/json.h"

void container_name(const json_t *container, char *text, size_t size)
{
	const char *name = json_string_or(container, "name", "");
	const char *pod = json_string_or(container, "pod", "");
	if (*pod)
		snprintf(text, size, "%s/%s/%s", json_string_or(container, "namespace", ""), pod,
			 name);
	else
		snprintf(text, size, "%s", name);
}

void container_label(const json_t *container, char *text, size_t size)
{
	container_name(container, text, size);
	if (!*text)
		snprintf(text, size, "%.*s", CONTAINER_SHORT_ID,
			 json_string_or(container, "id", ""));
}
