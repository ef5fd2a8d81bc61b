/*
 * Writes allot-scheduler's explanation (docs/reference/protocol.md, "explain") for people: the verdict, the reasons, one line
 * for similar nodes, the nearest nodes, possible fixes. Pure. Missing values are left out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void explain_text_write(const json_t *explanation, FILE *out);

/* ---- the files behind explain_text_write(), and what each offers to the others ---- */

/*
 * explain_text.c: explain_mib() writes an amount such as "8.0 GiB", and explain_memory() a requested amount such as "50 % of
 * the memory". `ask` is an element of the explanation's list "asks".
 */
#define EXPLAIN_AMOUNT_MAX 64
void explain_mib(json_int_t mib, char text[EXPLAIN_AMOUNT_MAX]);
void explain_memory(const json_t *ask, char text[EXPLAIN_AMOUNT_MAX]);
/* Writes a number such as "4,982". */
void explain_count(json_int_t count, char text[EXPLAIN_AMOUNT_MAX]);
json_int_t explain_number(const json_t *object, const char *name); /* 0 if missing */
const char *explain_word(const json_t *object, const char *name);  /* "" if missing */
/* Whether some node could serve the pod now. */
bool explain_has_room(const json_t *explanation);
const json_t *explain_request(const json_t *explanation, json_int_t container);
/* Returns the container's name if it is known, else its number. */
const char *explain_container(const json_t *explanation, json_int_t container,
			      char text[EXPLAIN_AMOUNT_MAX]);

/*
 * groups.c: explain_groups_write() writes the nodes that cannot serve the pod, grouped by reason. explain_nearest_write()
 * writes the nearest nodes, which lack the least.
 */
void explain_groups_write(const json_t *explanation, FILE *out);
void explain_nearest_write(const json_t *explanation, FILE *out);

/* help.c: writes possible fixes, one line each. */
void explain_help_write(const json_t *explanation, FILE *out);
