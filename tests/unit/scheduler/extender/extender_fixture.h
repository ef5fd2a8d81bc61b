/* The verbs filter, prioritize and bind: nodes by HAMi's formulas, reasons in HAMi's words. */
#pragma once

#include <errno.h>

#include "../cluster.h"

#define CURABLE "FailedNodes"
#define HOPELESS "FailedAndUnresolvableNodes"
#define MEMORY(n) "\"nvidia.com/gpumem\":\"" n "\""

json_t *running(const char *name, const char *node, const char *shares);
json_t *node_of_type(const char *name, unsigned cards, const char *type);

void filters(struct model *m, json_t *pod, const char *nodes, const char *fits);
void says(struct model *m, json_t *pod, const char *node, const char *list, const char *text);
void refuses(struct model *m, json_t *args, int result, const char *text);
