/*
 * Writes allot-scheduler's explanation (docs/reference/protocol.md, "explain") for people: the verdict, the reasons, one line
 * for similar nodes, the nearest nodes, possible fixes. Leaves missing values out. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void explain_text_write(const json_t *explanation, FILE *out);

/* Parts of explain_text_write(), and helpers that its files share: */

/* explain_mib() writes for example "8.0 GiB", explain_memory() "50 % of the memory". `ask` is an element of the list "asks". */
#define EXPLAIN_AMOUNT_MAX 64
void explain_mib(json_int_t mib, char text[EXPLAIN_AMOUNT_MAX]);
void explain_memory(const json_t *ask, char text[EXPLAIN_AMOUNT_MAX]);
/* Writes for example "4,982". */
void explain_count(json_int_t count, char text[EXPLAIN_AMOUNT_MAX]);
json_int_t explain_number(const json_t *object, const char *name); /* 0 if missing */
const char *explain_word(const json_t *object, const char *name);  /* "" if missing */
/* Whether some node could serve the pod now. */
bool explain_has_room(const json_t *explanation);
const json_t *explain_request(const json_t *explanation, json_int_t container);
/* Returns the container's name if it is known, else its number. */
const char *explain_container(const json_t *explanation, json_int_t container,
			      char text[EXPLAIN_AMOUNT_MAX]);

/* Write the nodes that cannot serve the pod, grouped by reason, and the nodes that lack the least. */
void explain_groups_write(const json_t *explanation, FILE *out);
void explain_nearest_write(const json_t *explanation, FILE *out);

/* Writes possible fixes, one line each. */
void explain_help_write(const json_t *explanation, FILE *out);
