/*
 * What filter found, as events of the pod say it, in HAMi's words (its pkg/scheduler/score.go and scheduler.go):
 *
 *     FilteringFailed   3 nodes CardInsufficientMemory(a,b,c)
 *     FilteringFailed   no available node, 3 nodes do not meet
 *     FilteringSucceed  find fit node(a), 2 nodes not fit, 1 nodes fit(a:12.50)
 *
 * HAMi names all nodes; here those that are named are few, as an event is not to be as long as a cluster is large. Pure.
 */
#pragma once

#include <stddef.h>

#include "scheduler/extender/filter_answer.h"

#define FILTER_FAIL "FilteringFailed"
#define FILTER_SUCCEED "FilteringSucceed"
#define FILTER_TEXT_MAX 1024
#define FILTER_WORD_MAX 100
#define FILTER_NAMES_MOST 8 /* of nodes with one reason */
#define FILTER_KINDS_MOST 4 /* of reasons: those of most nodes */
#define FILTER_SAYS_MOST (FILTER_KINDS_MOST + 1)

struct filter_say {
	char word[FILTER_WORD_MAX]; /* the reason; "": of all of them */
	char text[FILTER_TEXT_MAX];
};

/* `answer`: in which no node is fit. Returns how many are said. */
unsigned filter_says(const struct filter_answer *answer, struct filter_say ret[FILTER_SAYS_MOST]);

/* `fit`: how many nodes are, of which `score` is that of the one which was taken. */
void filter_success_text(const char *node, double score, size_t fit, size_t unfit, char *text,
			 size_t size);
