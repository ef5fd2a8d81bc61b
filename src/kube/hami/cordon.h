/*
 * Cards that an operator has taken out of service (annotation hami.io/device-cordon of a node): UUIDs by
 * commas, spaces around them allowed. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>

/* `cordon` is the annotation's value; NULL: there is none. */
bool cordon_has(const char *cordon, const char *uuid);
