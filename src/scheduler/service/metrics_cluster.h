/*
 * Writes metrics of cards and pods' shares, with HAMi's names, labels and units (HAMi, cmd/scheduler, v2.10), so that its
 * dashboards work. Also writes metrics of the model (model_counts()), with names of our own. Main thread only.
 */
#pragma once

#include <stdio.h>

#include "scheduler/model/model.h"

void metrics_write_model(FILE *out, const struct model *model);
