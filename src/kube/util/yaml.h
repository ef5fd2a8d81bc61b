/*
 * The part of YAML that files of settings are written in, such as kubeconfig: mappings and sequences by
 * indentation, texts plain or quoted, {} and [], comments; JSON too. Anchors, tags, flow collections with
 * something in them and texts of several lines are refused. Pure; thread safe.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

/* Every scalar is a text, but for null, ~, true and false. -EINVAL with the line; -ENOMEM. */
int yaml_parse(const char *text, json_t **ret, struct error *err);
