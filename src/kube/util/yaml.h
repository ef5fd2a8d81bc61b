/*
 * Parses the YAML that files such as kubeconfig use: mappings and sequences by indentation, plain and quoted strings, {} and
 * [], comments; also JSON. Rejects anchors, tags, nonempty flow collections and strings of several lines. Pure; thread safe.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

/* Scalars become strings, except null, ~, true and false. -EINVAL (the error names the line) or -ENOMEM. */
int yaml_parse(const char *text, json_t **ret, struct error *err);
