/*
 * A cluster of many nodes, each with 8 cards and 8 pods on them, as programs that measure the scheduler have it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/model/model.h"

#define SCALE_PODS_PER_NODE 8
#define SCALE_NAME_MAX 48

void scale_node_name(unsigned node, char name[SCALE_NAME_MAX]);
/* The p-th pod, which has a part of one card, or one alone: as JSON, to be freed. */
char *scale_pod_text(unsigned p);
/* A model that knows the whole cluster, and the time to build it. Ends the program if out of memory. */
struct model *scale_know(const struct model_terms *terms, unsigned nodes, double *ret_s);

/* CPU time of this thread: other work of the machine does not count in it. */
uint64_t scale_computed_ns(void);
/* The quantile `part` of a list, in ms; sorts the list. */
double scale_part_ms(uint64_t *ns, size_t count, double part);

void scale_die(const char *what, const struct error *err) __attribute__((noreturn));
