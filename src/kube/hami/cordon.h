/*
 * GPUs that an operator has taken out of service (annotation hami.io/device-cordon of a node): a list of UUIDs separated by
 * commas, with optional spaces. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>

/* `cordon` is the annotation's value, or NULL if there is none. */
bool cordon_has(const char *cordon, const char *uuid);
