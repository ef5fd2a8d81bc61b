/*
 * Parses the setting metrics_names, the names beside allot's own: "none", or a list of "hami" and "gpu-manager". Pure.
 */
#pragma once

#include "base/error.h"

#define METRICS_NAMES_HAMI 1U
#define METRICS_NAMES_GPU_MANAGER 2U

/* Returns the METRICS_NAMES_ bits, or -EINVAL with the valid values. */
int metrics_names_parse(const char *text, unsigned *ret_names, struct error *err);
