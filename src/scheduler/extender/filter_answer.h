/*
 * What filter answers: a verdict a node, in the order in which they were asked about. A reason is kept once however many nodes
 * it is of: they are much alike.
 *
 *     verdict[i] -> list, word[k] -> "8/8 CardInsufficientMemory"
 *
 * As many as want it hold a reference. One thread.
 */
#pragma once

#include "scheduler/extender/call_args.h"

enum filter_list {
	FILTER_NOWHERE, /* it is no name, or came before and has its verdict */
	FILTER_FITS,
	FILTER_FAILED,
	FILTER_HOPELESS, /* nobody's end would help: FailedAndUnresolvableNodes */
	FILTER_LISTS,
};

struct filter_verdict {
	enum filter_list list;
	uint32_t word; /* why it does not fit */
};

struct filter_answer {
	unsigned references;
	struct call_args *args;     /* a reference */
	char error[ERROR_TEXT_MAX]; /* why nothing was decided; "": it was */
	size_t fits;                /* how many do */
	/* The reasons, behind each other, and where each begins. Owned */
	char *text;
	size_t text_used, text_size;
	size_t *word;
	uint32_t words, words_room;
	struct filter_verdict verdict[]; /* args->count of them */
};

/* All are nowhere. Takes a reference. NULL: no memory. */
struct filter_answer *filter_answer_new(struct call_args *args);
struct filter_answer *filter_answer_take(struct filter_answer *answer);
void filter_answer_give(struct filter_answer *answer); /* NULL is fine */

/* A reason, to be said of nodes. What was added just before is not added again. -ENOMEM. */
int filter_answer_add(struct filter_answer *answer, const char *text, uint32_t *ret_word);
/* Until the next one is added. */
const char *filter_answer_word(const struct filter_answer *answer, uint32_t word);

/* As JSON, an ExtenderFilterResult; to be freed. NULL: no memory. */
char *filter_answer_text(const struct filter_answer *answer);
