/*
 * What `allot doctor` found: one line a thing that was looked at, in the order in which it was. A list belongs to one
 * thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

enum finding_level {
	FINDING_OK,
	FINDING_NOTE,    /* as it is; good to know */
	FINDING_WARNING, /* works, but not all of it, or not as well */
	FINDING_PROBLEM, /* sharing a GPU here fails */
	FINDING_LEVELS,
};

#define FINDING_TEXT_MAX 512
#define FINDING_NAME_MAX 24

struct finding {
	enum finding_level level;
	char name[FINDING_NAME_MAX]; /* of the check; stable, for scripts */
	char what[FINDING_TEXT_MAX];
	char remedy[FINDING_TEXT_MAX]; /* "": nothing to do */
};

struct findings {
	struct finding *list; /* owned */
	size_t count, room;
};

void findings_free(struct findings *findings);

/*
 * Adds one, without a remedy, whose text is the format's. Control characters become '?'. Out of memory: it is left
 * out, and findings_worst() is FINDING_PROBLEM from then on.
 */
struct finding *findings_add(struct findings *findings, enum finding_level level, const char *name,
			     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* What to do about it. NULL is fine. */
void finding_set_remedy(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

enum finding_level findings_worst(const struct findings *findings);
/* How many there are of a level. */
size_t findings_count(const struct findings *findings, enum finding_level level);

/* A line each, with the remedy below; wrapped at `width`. */
void findings_write(const struct findings *findings, int width, FILE *out);
/* {"version":1,"worst","findings":[{"check","level","what","remedy"}]}, as allot-doctor(1) has it; NULL: no memory. */
json_t *findings_json(const struct findings *findings);
