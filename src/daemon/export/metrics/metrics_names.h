/*
 * Parses the setting metrics_names: the other projects under whose names metrics are exported too, besides allot's own. It is
 * "none", or a list of "hami" and "gpu-manager". Pure.
 */
#pragma once

#include "base/error.h"

#define METRICS_NAMES_HAMI 1U
#define METRICS_NAMES_GPU_MANAGER 2U

/* *ret_names gets the METRICS_NAMES_ bits. On -EINVAL, err names the valid values. */
int metrics_names_parse(const char *text, unsigned *ret_names, struct error *err);
