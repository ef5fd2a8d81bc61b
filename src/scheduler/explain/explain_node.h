/* Explains what a node's cards offer a pod. Internal to explain*.c. */
#pragma once

#include <jansson.h>

#include "scheduler/model/model_inside.h"

/*
 * Returns a new object with the node's verdict and what it lacks, and each of its cards if `has_cards`. Call after
 * fit_begin() on model->fit for the pod's request. Returns NULL if memory runs out.
 */
json_t *explain_node(struct model *model, const struct model_node *node,
		     const struct model_pod *pod, bool has_cards);

/* Adds the amounts of a share. */
void explain_add_share(json_t *to, const struct inventory_share *share);

/* Returns an error text as a JSON string. The text may have been cut in the middle of a character. */
json_t *explain_text(const char *text);
