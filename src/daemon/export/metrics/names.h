/*
 * Which names metrics have beside allot's own, as the setting metrics_names says: "none", or some of "hami" and
 * "gpu-manager", by commas. Pure.
 */
#pragma once

#include "base/error.h"

#define METRICS_NAMES_HAMI 1U
#define METRICS_NAMES_GPU_MANAGER 2U

/* -EINVAL with what would be right. */
int metrics_names_parse(const char *text, unsigned *ret_names, struct error *err);
