/*
 * Is a card well? By what the driver reports (Xids, errors of memory) and by whether it answers.
 *
 * What the driver reports of a card stays until somebody says that the card is well again (by hand, or by a
 * setting after a time without another): no call tells whether it was repaired. Who does not answer, or is
 * lost, is well again when it has answered HEALTH_ANSWERS times in a row.
 *
 * Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define HEALTH_LOOK_NS UINT64_C(1000000000) /* between two questions to a card */
#define HEALTH_FAILURES 3                   /* calls in a row that fail: the card does not answer */
#define HEALTH_ANSWERS 3
#define HEALTH_REASON_MAX 160
#define HEALTH_IGNORED_MAX 32

enum health_effect {
	HEALTH_OF_PROGRAM, /* a program's own fault: the card is well */
	HEALTH_NOTED,      /* told of in the log; the card works on */
	HEALTH_BAD,        /* nothing new belongs on this card */
	HEALTH_LOST,       /* the same, until it answers again */
};

/* What an Xid means: one row each; another one is taken as HEALTH_BAD. */
struct health_xid {
	unsigned number;
	enum health_effect effect;
	const char *what;
};
const struct health_xid *health_find_xid(uint64_t number);

/* Xids that the settings take out: "none", or "43,45". -EINVAL with what would be right. */
struct health_ignored {
	unsigned count;
	unsigned number[HEALTH_IGNORED_MAX];
};
int health_parse_ignored(const char *text, struct health_ignored *ret, struct error *err);

enum health_answer {
	HEALTH_ANSWERED,
	HEALTH_SAYS_LOST, /* the driver says that the card is gone */
	HEALTH_FAILED,    /* the call failed otherwise */
	HEALTH_SILENT,    /* it has not come back for long */
};

/* All zero: well. */
struct health {
	bool is_bad; /* of these, any: */
	bool has_fault, is_lost, is_failing, is_silent;
	uint64_t since_ns;             /* is_bad has been what it is; 0: always */
	double since_s;                /* the same since 1970 */
	uint64_t fault_ns;             /* the last fault */
	unsigned failures, answers;    /* in a row */
	char fault[HEALTH_REASON_MAX]; /* the first one */
};

/* When something is seen, by both clocks. */
struct health_time {
	uint64_t now_ns;
	double now_s; /* since 1970 */
};

/* Each takes something in and returns whether is_bad has changed. */
bool health_note_xid(struct health *health, uint64_t number, const struct health_ignored *ignored,
		     const struct health_time *when);
bool health_note_ecc(struct health *health, const struct health_time *when);
bool health_note_answer(struct health *health, enum health_answer answer,
			const struct health_time *when);
/* The reported fault is over: by hand, or after recover_ns without another one (0: never by itself). */
bool health_cure(struct health *health, const struct health_time *when);
bool health_pass_time(struct health *health, uint64_t recover_ns, const struct health_time *when);

/* Why it is bad, in a line; "" where it is not. */
void health_reason(const struct health *health, char ret_text[HEALTH_REASON_MAX]);
