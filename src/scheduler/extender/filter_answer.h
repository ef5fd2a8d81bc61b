/*
 * The answer to a filter call has one verdict per node, in the call's order. Nodes share reasons, so each text is stored once.
 *
 *     verdict[i] -> list, reason[k] -> "8/8 CardInsufficientMemory"
 *
 * Reference counted. Not thread-safe.
 */
#pragma once

#include "scheduler/extender/call_args.h"

enum filter_list {
	FILTER_OMITTED, /* in no list: no valid name, or a repeated one */
	FILTER_FITS,
	FILTER_FAILED,
	FILTER_UNRESOLVABLE, /* FailedAndUnresolvableNodes: evictions would not help */
	FILTER_LISTS,
};

struct filter_verdict {
	enum filter_list list;
	uint32_t reason; /* if the node does not fit: why, as an index in filter_answer.reason */
};

struct filter_answer {
	unsigned references;
	struct call_args *args;     /* a reference */
	char error[ERROR_TEXT_MAX]; /* why there are no verdicts; "" if there are */
	size_t fits;
	/* all reasons' texts, one after the other, and where each text begins; owned */
	char *text;
	size_t text_used, text_size;
	size_t *reason;
	uint32_t reasons, reasons_room;
	struct filter_verdict verdict[]; /* args->count entries */
};

/* All verdicts are FILTER_OMITTED at first. Takes a reference to `args`. Returns NULL if memory runs out. */
struct filter_answer *filter_answer_new(struct call_args *args);
struct filter_answer *filter_answer_get(struct filter_answer *answer);
void filter_answer_put(struct filter_answer *answer); /* `answer` may be NULL */

/* Adds a reason, or finds an equal text among the newest ones. *ret_reason is its index. Returns 0 or -ENOMEM. */
int filter_answer_add_reason(struct filter_answer *answer, const char *text, uint32_t *ret_reason);
/* The text is valid until the next filter_answer_add_reason(). */
const char *filter_answer_reason(const struct filter_answer *answer, uint32_t reason);

/* Returns an ExtenderFilterResult as JSON, which the caller frees; NULL if memory runs out. */
char *filter_answer_text(const struct filter_answer *answer);
