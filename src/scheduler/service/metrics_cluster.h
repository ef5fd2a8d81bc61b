/*
 * Metrics of the cluster's cards and the shares of pods, with HAMi's names, labels and units (HAMi, cmd/scheduler, v2.10), so
 * that its dashboards keep working; and metrics of the model with our own names.
 */
#pragma once

#include <stdio.h>

#include "scheduler/model/model.h"

/* Call from the main thread only. */
void metrics_write_model(FILE *out, const struct model *model);
