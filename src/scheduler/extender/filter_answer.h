/*
 * The answer of filter: a verdict per node, in the call's order. Nodes share reasons, so each text is stored once.
 *
 *     verdict[i] -> list, word[k] -> "8/8 CardInsufficientMemory"
 *
 * Reference counted. Not thread-safe.
 */
#pragma once

#include "scheduler/extender/call_args.h"

enum filter_list {
	FILTER_NOWHERE, /* in no list: no valid name, or a repeated one */
	FILTER_FITS,
	FILTER_FAILED,
	FILTER_HOPELESS, /* FailedAndUnresolvableNodes: evictions would not help */
	FILTER_LISTS,
};

struct filter_verdict {
	enum filter_list list;
	uint32_t word; /* if it does not fit: the reason, an index in filter_answer.word */
};

struct filter_answer {
	unsigned references;
	struct call_args *args;     /* a reference */
	char error[ERROR_TEXT_MAX]; /* why there are no verdicts; "" if there are */
	size_t fits;
	/* All reasons one after the other, and where each begins. Owned */
	char *text;
	size_t text_used, text_size;
	size_t *word;
	uint32_t words, words_room;
	struct filter_verdict verdict[]; /* args->count entries */
};

/* Makes an answer with all verdicts FILTER_NOWHERE, and takes a reference to `args`. NULL if memory runs out. */
struct filter_answer *filter_answer_new(struct call_args *args);
struct filter_answer *filter_answer_get(struct filter_answer *answer);
void filter_answer_put(struct filter_answer *answer); /* `answer` may be NULL */

/* Adds a reason, or finds an equal one among the newest; returns its index in *ret_word. Returns 0 or -ENOMEM. */
int filter_answer_add(struct filter_answer *answer, const char *text, uint32_t *ret_word);
/* Returns a reason's text, valid until the next filter_answer_add(). */
const char *filter_answer_word(const struct filter_answer *answer, uint32_t word);

/* Returns the answer as JSON, an ExtenderFilterResult; the caller frees the text. Returns NULL if memory runs out. */
char *filter_answer_text(const struct filter_answer *answer);
