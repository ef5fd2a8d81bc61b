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

#include "kube/util/object.h"
#include "scheduler/bind/decision.h"
#include "scheduler/extender/extender.h"
#include "scheduler/model/model.h"

#define GANG_HOLD_NS (UINT64_C(30) * 1000000000) /* of the models here */
#define GPU "\"nvidia.com/gpu\":\"1\""

/* A text that is JSON. It must be: the test fails else. */
json_t *object_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Cards "<name>-0" and on, each for 10 containers; half of them on each NUMA node. */
json_t *node_object(const char *name, unsigned cards, uint64_t memory_mib, unsigned cores_pct);
/* A node that says that of its cards, and is cordoned so; NULL: not at all. */
json_t *node_saying(const char *name, const char *cards, const char *cordon);
/* A pod of namespace "ns", uid "uid-<name>", with one container "main" of these limits. */
json_t *pod_object(const char *name, const char *limits);
void annotate(json_t *object, const char *name, const char *value);
/* With what a decision writes to it: `phase` is its bind-phase; bound to the node if `is_bound`. */
void allocate(json_t *pod, const char *node, const char *shares, const char *phase, bool is_bound);

/* A model whose lists are complete and empty. */
struct model *model_of_nothing(void);
/* The objects are given up. The test fails where the model does not take them. */
void give_node(struct model *model, json_t *node);
void give_pod(struct model *model, json_t *pod);
/* Of namespace "ns". */
void give_quota(struct model *model, const char *name, const char *hard);

/* The verbs' arguments. `nodes`: names by commas. */
json_t *filter_args(json_t *pod, const char *nodes);
json_t *bind_args(const char *pod, const char *node);

/* The names that filter lets through, by commas, and why another one is not: of either list; "" if it is in neither. */
const char *fitting(const json_t *answer);
const char *reason_of(const json_t *answer, const char *node);

/* What of a card is used. The test fails where there is no such one. */
struct place_card card_of(const struct model *model, const char *uuid);
