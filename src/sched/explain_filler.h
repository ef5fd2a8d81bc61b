/*
 * What pods that are placed by use (filler.h) find of cards, in figures: of what their time is taken, by whom it is lent, and
 * whether it is shut to them. Inside explain*.c alone.
 */
#ifndef ALLOT_SCHED_EXPLAIN_FILLER_H
#define ALLOT_SCHED_EXPLAIN_FILLER_H

#include <jansson.h>

#include "sched/model_inside.h"

/* For a pod that is not placed by use: nothing is added. After fit_begin() on model->fit for its request. */
void explain_add_use(json_t *to, const struct model *model, const struct model_node *node);
void explain_add_card_use(json_t *to, const struct model *model, const struct model_node *node,
			  unsigned card);
/* Is card i shut to it? */
bool explain_is_shut(const struct model *model, const struct model_node *node, unsigned card);

#endif
