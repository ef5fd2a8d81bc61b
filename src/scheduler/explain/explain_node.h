/* Explains what a node's cards offer a pod. Internal to explain*.c. */
#pragma once

#include <jansson.h>

#include "scheduler/model/model_inside.h"

/*
 * Returns a new object: the node's verdict, what it lacks, and with `has_cards` each card. NULL if memory runs out. Call after
 * fit_begin() for the pod's request.
 */
json_t *explain_node(struct model *model, const struct model_node *node,
		     const struct model_pod *pod, bool has_cards);

void explain_add_share(json_t *to, const struct inventory_share *share);

/* Returns a text as a JSON string, even if the text ends inside a UTF-8 character. */
json_t *explain_text(const char *text);
