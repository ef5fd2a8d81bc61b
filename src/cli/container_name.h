/* Names a container from the daemon's reply, for users. Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define CONTAINER_SHORT_ID 12
#define CONTAINER_LABEL_MAX 512

/* Writes the container's name, "namespace/pod/name" or "name", cut to `size`; "" if it has no name. */
void container_name(const json_t *container, char *text, size_t size);
/* Writes the container's name, or the beginning of its id if there is no name. */
void container_label(const json_t *container, char *text, size_t size);
