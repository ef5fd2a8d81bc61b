/*
 * Parses the setting metrics_names, which lists other projects. Metrics are exported under those projects' names too, besides
 * allot's own. The setting is "none", or a list of "hami" and "gpu-manager". Pure.
 */
#pragma once

#include "base/error.h"

#define METRICS_NAMES_HAMI 1U
#define METRICS_NAMES_GPU_MANAGER 2U

/* Writes the METRICS_NAMES_ bits of the setting to *ret_names. Returns 0, or -EINVAL; err then names the valid values. */
int metrics_names_parse(const char *text, unsigned *ret_names, struct error *err);
