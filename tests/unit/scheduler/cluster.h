/* Clusters for the tests of src/scheduler: objects as the API server has them, and a model that has seen some. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "scheduler/bind/decision.h"
#include "scheduler/extender/extender.h"
#include "scheduler/model/model.h"

#define GANG_HOLD_NS (UINT64_C(30) * 1000000000) /* of the models here */
#define GPU "\"nvidia.com/gpu\":\"1\""

/* Parses JSON, written as for printf. The test fails if the text is not JSON. */
json_t *object_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A node with cards "<name>-0", "<name>-1" and so on, each for 10 containers, half of them on each NUMA node. */
json_t *node_object(const char *name, unsigned cards, uint64_t memory_mib, unsigned cores_pct);
/* A node with these values of the annotations KUBE_NODE_REGISTER and KUBE_NODE_CORDON; NULL: without that annotation. */
json_t *node_saying(const char *name, const char *cards, const char *cordon);
/* A pod of namespace "ns", uid "uid-<name>", with one container "main" of these limits. */
json_t *pod_object(const char *name, const char *limits);
void annotate(json_t *object, const char *name, const char *value);
/* Adds a decision's annotations to the pod, with bind-phase `phase`, and binds the pod to the node if `is_bound`. */
void allocate(json_t *pod, const char *node, const char *shares, const char *phase, bool is_bound);

/* A model whose lists are complete and empty. */
struct model *model_of_nothing(void);
/* Give an object, and its reference, to the model. The test fails if the model refuses the object. */
void give_node(struct model *model, json_t *node);
void give_pod(struct model *model, json_t *pod);
/* Gives the model a ResourceQuota of namespace "ns" with these hard limits. */
void give_quota(struct model *model, const char *name, const char *hard);

/* The arguments of the extender's verbs filter and bind. `nodes`: names, separated by commas. */
json_t *filter_args(json_t *pod, const char *nodes);
json_t *bind_args(const char *pod, const char *node);

/*
 * Read the answer of filter: fitting() returns the names of the nodes that fit, separated by commas. reason_of() returns why a
 * node does not fit; "" if the answer has no reason for that node.
 */
const char *fitting(const json_t *answer);
const char *reason_of(const json_t *answer, const char *node);

/* Returns the card with that UUID and its present use. The test fails if the model has no such card. */
struct place_card card_of(const struct model *model, const char *uuid);
