/*
 * A parser for the part of YAML that configuration files such as kubeconfig use: mappings and
 * sequences by indentation, plain and quoted strings, {} and [], comments; also JSON. Anchors,
 * tags, nonempty flow collections and strings of several lines are rejected. Pure; thread safe.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

/*
 * Parses the text. Scalars become strings, except null, ~, true and false. Returns -EINVAL (the
 * error names the line) or -ENOMEM.
 */
int yaml_parse(const char *text, json_t **ret, struct error *err);
