/* Explains what a node's cards offer a pod. Internal to explain*.c. */
#pragma once

#include <jansson.h>

#include "scheduler/model/model_inside.h"

/* Returns a new object; with `has_cards`, it lists each card. NULL if out of memory. Call after fit_begin() for the pod. */
json_t *explain_node(struct model *model, const struct model_node *node,
		     const struct model_pod *pod, bool has_cards);

void explain_add_share(json_t *to, const struct inventory_share *share);

/* Replaces invalid UTF-8, so that a text that ends inside a character becomes a JSON string too. */
json_t *explain_text(const char *text);
