/* Pods and nodes for tests of the extender, and checks of its answers. Each check takes over the reference to pod or args. */
#pragma once

#include <errno.h>

#include "../cluster.h"

/* The list of a filter answer for nodes that may fit after an eviction, and the list for nodes that cannot. */
#define RESOLVABLE "FailedNodes"
#define UNRESOLVABLE "FailedAndUnresolvableNodes"
#define MEMORY(n) "\"nvidia.com/gpumem\":\"" n "\""

/* A pod that is bound to the node and runs there with these shares, as in the annotation of a decision. */
json_t *running_pod(const char *name, const char *node, const char *shares);
/* A node with this many GPUs of one type, each with 16000 MiB. */
json_t *node_of_type(const char *name, unsigned gpus, const char *type);

/* Fails the test unless filter returns exactly the nodes `fits` of `nodes`; both are names, separated by commas. */
void assert_fits(struct model *m, json_t *pod, const char *nodes, const char *fits);
/* Fails the test unless filter refuses the node with the reason `text`, in this list of the answer. */
void assert_refused(struct model *m, json_t *pod, const char *node, const char *list,
		    const char *text);
/* Fails the test unless extender_decide() returns `result` with this error text. */
void assert_not_bound(struct model *m, json_t *args, int result, const char *text);
