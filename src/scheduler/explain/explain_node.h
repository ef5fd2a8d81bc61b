/* What a node's cards are to a pod. Inside explain*.c alone. */
#pragma once

#include <jansson.h>

#include "scheduler/model/model_inside.h"

/*
 * Its verdict, and what it lacks; each of its cards as well, if wanted. After fit_begin() on model->fit for the pod's request. A
 * new object; NULL: no memory.
 */
json_t *explain_node(struct model *model, const struct model_node *node,
		     const struct model_pod *pod, bool has_cards);

/* How much of a card a container's share is. */
void explain_add_share(json_t *to, const struct inventory_share *share);

/* What was found to be wrong with something: texts of it may have been cut within a character. */
json_t *explain_text(const char *text);
