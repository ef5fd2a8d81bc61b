/*
 * The cluster's cards and what pods have of them, as Prometheus reads it: by HAMi's names, labels and units (HAMi,
 * cmd/scheduler, v2.10), so that its dashboards go on; and how the model stands, by our own.
 */
#pragma once

#include <stdio.h>

#include "scheduler/model/model.h"

/* Main thread only. */
void metrics_write_model(FILE *out, const struct model *model);
