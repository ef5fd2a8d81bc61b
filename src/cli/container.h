/* A container as the daemon tells of it, in words for people. Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define CONTAINER_SHORT_ID 12
#define CONTAINER_LABEL_MAX 512

/* "namespace/pod/name" or "name", as its engine calls it; "": that has told nothing. Cut to size. */
void container_name(const json_t *container, char *text, size_t size);
/* That, or else the beginning of its id. */
void container_label(const json_t *container, char *text, size_t size);
