/* Names of resources that pods request, such as "nvidia.com/gpu" (kubernetes.io, "Extended resources"). Pure; thread safe. */
#pragma once

#include "base/error.h"

/*
 * A name is a domain in lower case, '/', and a name that begins and ends with a letter or digit. The domain kubernetes.io is
 * not allowed, because the kubelet rejects it. Returns 0 or -EINVAL.
 */
int resource_name_check(const char *name, struct error *err);
