/*
 * The texts of a pod's events about a filter call, in HAMi's words (its pkg/scheduler/score.go and scheduler.go):
 *
 *     FilteringFailed   3 nodes CardInsufficientMemory(a,b,c)
 *     FilteringFailed   no available node, 3 nodes do not meet
 *     FilteringSucceed  find fit node(a), 2 nodes not fit, 1 nodes fit(a:12.50)
 *
 * HAMi names all nodes; here only a few, so that an event does not grow with the cluster. Pure.
 */
#pragma once

#include <stddef.h>

#include "scheduler/extender/filter_answer.h"

#define FILTER_FAIL "FilteringFailed"
#define FILTER_SUCCEED "FilteringSucceed"
#define FILTER_TEXT_MAX 1024
#define FILTER_REASON_MAX 100
#define FILTER_NAMES_MOST 8 /* node names per reason */
#define FILTER_KINDS_MOST 4 /* reasons named: the most frequent ones */
#define FILTER_EVENTS_MAX (FILTER_KINDS_MOST + 1)

struct filter_event {
	char reason[FILTER_REASON_MAX]; /* "" for the summary */
	char text[FILTER_TEXT_MAX];
};

/* For a call in which no node fits: writes an event for each frequent reason, then a summary. Returns their number. */
unsigned filter_failure_events(const struct filter_answer *answer,
			       struct filter_event ret[FILTER_EVENTS_MAX]);

/* `fit` nodes fit and `unfit` do not; `node` was chosen and has this `score`. */
void filter_success_text(const char *node, double score, size_t fit, size_t unfit, char *text,
			 size_t size);
