/*
 * Decides whether a card is healthy: by what the driver reports (Xids, memory errors), and by whether calls to the driver about
 * the card succeed.
 *
 * A fault that the driver reports stays until a user says that the card is healthy again or, if so configured, until some time
 * has passed without another fault. No driver call tells whether a card was repaired. A card that did not answer, or was lost,
 * is healthy again when it has answered HEALTH_ANSWERS times in a row.
 *
 * No clock, no I/O, no static data. The functions change only the struct health that they are given.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define HEALTH_POLL_NS UINT64_C(1000000000) /* time between two polls of a card */
/* number of failed calls in a row after which the card is unhealthy (is_failing) */
#define HEALTH_FAILURES 3
#define HEALTH_ANSWERS 3
#define HEALTH_REASON_MAX 160
#define HEALTH_IGNORED_MAX 32

enum health_effect {
	HEALTH_OF_PROGRAM, /* the program's own fault, so the card is healthy */
	HEALTH_NOTED,      /* only logged */
	HEALTH_BAD,        /* nothing new should be placed on this card */
	HEALTH_LOST,       /* like HEALTH_BAD, but ends after HEALTH_ANSWERS answers in a row */
};

/* A row of the table of Xids in health_policy.c. An Xid without a row counts as HEALTH_BAD. */
struct health_xid {
	unsigned number;
	enum health_effect effect;
	const char *what;
};
const struct health_xid *health_find_xid(uint64_t number);

/*
 * Xids to ignore. health_parse_ignored() reads "none" or a list such as "43,45". It returns -EINVAL for any other text; err
 * says what is valid.
 */
struct health_ignored {
	unsigned count;
	unsigned number[HEALTH_IGNORED_MAX];
};
int health_parse_ignored(const char *text, struct health_ignored *ret, struct error *err);

enum health_answer {
	HEALTH_ANSWERED,
	HEALTH_SAYS_LOST, /* the driver says that the card is gone */
	HEALTH_FAILED,    /* the call failed for another reason */
	HEALTH_SILENT,    /* the call has not returned for long */
};

/* All zero: healthy. */
struct health {
	bool is_bad; /* any of the four flags below */
	bool has_fault, is_lost, is_failing, is_silent;
	uint64_t since_ns; /* time of the last change of is_bad; 0: never */
	double since_s;    /* since_ns as seconds since 1970 */
	uint64_t fault_ns; /* time of the latest fault */
	/* how many calls in a row failed, and how many in a row the card answered */
	unsigned failures, answers;
	char fault[HEALTH_REASON_MAX]; /* text of the first fault */
};

/* The time of an event, by the monotonic clock (now_ns) and by the wall clock (now_s). */
struct health_time {
	uint64_t now_ns;
	double now_s; /* seconds since 1970 */
};

/* Each records an event, and returns whether is_bad has changed. */
bool health_note_xid(struct health *health, uint64_t number, const struct health_ignored *ignored,
		     const struct health_time *when);
bool health_note_ecc(struct health *health, const struct health_time *when);
bool health_note_answer(struct health *health, enum health_answer answer,
			const struct health_time *when);
/* health_clear_fault() ends a reported fault. health_pass_time() does so after recover_ns without another fault (0: never). */
bool health_clear_fault(struct health *health, const struct health_time *when);
bool health_pass_time(struct health *health, uint64_t recover_ns, const struct health_time *when);

/* Writes in one line why the card is bad; "" if it is healthy. */
void health_reason(const struct health *health, char ret_text[HEALTH_REASON_MAX]);
