/*
 * Parser of the setting metrics_names: which names metrics have in addition to allot's own. The value is "none", or a
 * comma-separated list of "hami" and "gpu-manager". Pure.
 */
#pragma once

#include "base/error.h"

#define METRICS_NAMES_HAMI 1U
#define METRICS_NAMES_GPU_MANAGER 2U

/*
 * Writes the METRICS_NAMES_ bits that `text` names. For any other text, returns -EINVAL and an error that lists the valid
 * values.
 */
int metrics_names_parse(const char *text, unsigned *ret_names, struct error *err);
