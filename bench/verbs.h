/* The verbs of the scheduler's extender as their callers have them: JSON both ways, through all that a request goes through. */
#pragma once

#include <jansson.h>

#include "scheduler/model/model.h"

/* The answer, to be given up. Ends the process where there is none. */
json_t *verbs_filter(struct model *model, const json_t *args);
json_t *verbs_prioritize(struct model *model, const json_t *args);
