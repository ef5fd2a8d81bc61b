/* The findings of `allot doctor`: one for each thing that it examined, in the order of the checks. Not thread safe. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

enum finding_level {
	FINDING_OK,
	FINDING_NOTE,    /* no fault, but good to know */
	FINDING_WARNING, /* sharing a GPU works, but something does not work fully */
	FINDING_PROBLEM, /* sharing a GPU does not work on this machine */
	FINDING_LEVELS,
};

#define FINDING_TEXT_MAX 512
#define FINDING_NAME_MAX 24

struct finding {
	enum finding_level level;
	char name[FINDING_NAME_MAX]; /* name of the check; stable, for scripts */
	char what[FINDING_TEXT_MAX];
	char remedy[FINDING_TEXT_MAX]; /* "" if there is nothing to do */
};

struct findings {
	struct finding *list; /* owned */
	size_t count, room;
};

void findings_free(struct findings *findings);

/*
 * Adds a finding without a remedy. `format` is as for printf(); control characters become '?'. If memory runs out, the finding
 * is lost, the previous one becomes a FINDING_PROBLEM, and the result is NULL.
 */
struct finding *findings_add(struct findings *findings, enum finding_level level, const char *name,
			     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Sets what the user should do. Does nothing if `finding` is NULL. */
void finding_set_remedy(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

enum finding_level findings_worst(const struct findings *findings);
size_t findings_count(const struct findings *findings, enum finding_level level);

/* Wraps lines at `width` columns. A finding's remedy is below the finding. */
void findings_write(const struct findings *findings, int width, FILE *out);
/* Returns {"version":1,"worst","findings":[{"check","level","what","remedy"}]} (allot-doctor(1)); NULL if out of memory. */
json_t *findings_json(const struct findings *findings);
