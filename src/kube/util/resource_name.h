/* Names of what pods ask for, as "nvidia.com/gpu" (kubernetes.io, "Extended resources"). Pure; thread safe. */
#pragma once

#include "base/error.h"

/*
 * A domain in small letters, '/', and a name that begins and ends with a letter or digit; not of the domain
 * kubernetes.io, which the kubelet would refuse. -EINVAL, with what would be right.
 */
int resource_name_check(const char *name, struct error *err);
