/*
 * Decides whether a GPU is healthy: by the driver's reports (Xids, memory errors), and by whether calls to the driver about the
 * GPU succeed.
 *
 * A fault that the driver reports stays until a user says that the GPU is healthy again or, if so configured, until some time
 * has passed without another fault. No driver call tells whether a GPU was repaired. A GPU that did not answer, or was lost, is
 * healthy again when it has answered HEALTH_ANSWERS times in a row.
 *
 * No clock, no I/O, no static data. The functions change only the struct health that they are given.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define HEALTH_POLL_NS UINT64_C(1000000000) /* time between two polls of a GPU */
/* failed calls in a row after which the GPU is unhealthy (is_failing) */
#define HEALTH_FAILURES 3
#define HEALTH_ANSWERS 3
#define HEALTH_REASON_MAX 160
#define HEALTH_IGNORED_MAX 32

enum health_effect {
	HEALTH_OF_PROGRAM, /* the program's own fault, so the GPU is healthy */
	HEALTH_NOTED,      /* only logged */
	HEALTH_BAD,        /* nothing new should be placed on this GPU */
	HEALTH_LOST,       /* like HEALTH_BAD, but ends after HEALTH_ANSWERS answers in a row */
};

/* A row of the table of Xids in health_policy.c. An Xid without a row counts as HEALTH_BAD. */
struct health_xid {
	unsigned number;
	enum health_effect effect;
	const char *what;
};
const struct health_xid *health_find_xid(uint64_t number);

/* Xids to ignore. health_parse_ignored() reads "none" or a list such as "43,45"; -EINVAL for any other text. */
struct health_ignored {
	unsigned count;
	unsigned number[HEALTH_IGNORED_MAX];
};
int health_parse_ignored(const char *text, struct health_ignored *ret, struct error *err);

enum health_answer {
	HEALTH_ANSWERED,
	HEALTH_SAYS_LOST, /* the driver says that the GPU is gone */
	HEALTH_FAILED,    /* the call failed for another reason */
	HEALTH_SILENT,    /* the call has not returned for long */
};

/* All zero: healthy. */
struct health {
	bool is_bad; /* any of the four flags below */
	bool has_fault, is_lost, is_failing, is_silent;
	uint64_t since_ns; /* time of the last change of is_bad; 0: never */
	double since_s;    /* since_ns as seconds since 1970 */
	uint64_t fault_ns;
	/* failures in a row; answers in a row */
	unsigned failures, answers;
	char fault[HEALTH_REASON_MAX]; /* text of the first fault */
};

/* By the monotonic clock and by the wall clock. */
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

/* Writes in one line why the GPU is bad; "" if it is healthy. */
void health_reason(const struct health *health, char ret_text[HEALTH_REASON_MAX]);
