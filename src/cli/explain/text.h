/*
 * What allot-scheduler explains (docs/reference/protocol.md, "explain"), for people: the verdict in a sentence, the reasons, nodes that
 * are alike in one line, what is nearest to serving, what would help. Pure: JSON in, text out; what is missing is left out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void explain_text_write(const json_t *explanation, FILE *out);

/* ---- parts of it, each in a file ---- */

/* text.c: "8.0 GiB"; "50 % of a card's memory". `ask`: one of "asks". */
#define EXPLAIN_AMOUNT_MAX 64
void explain_mib(json_int_t mib, char text[EXPLAIN_AMOUNT_MAX]);
void explain_memory(const json_t *ask, char text[EXPLAIN_AMOUNT_MAX]);
/* "4,982" */
void explain_count(json_int_t count, char text[EXPLAIN_AMOUNT_MAX]);
json_int_t explain_number(const json_t *object, const char *name); /* 0: there is none */
const char *explain_word(const json_t *object, const char *name);  /* "": there is none */
/* Could a node serve it as it is? */
bool explain_has_room(const json_t *explanation);
/* What the container of that place in the pod asks for; NULL: nothing. */
const json_t *explain_ask(const json_t *explanation, json_int_t container);
/* Its name, where it is known; else its number. */
const char *explain_container(const json_t *explanation, json_int_t container,
			      char text[EXPLAIN_AMOUNT_MAX]);

/* groups.c: nodes that do not serve, by reason; and those that lack least. */
void explain_groups_write(const json_t *explanation, FILE *out);
void explain_nearest_write(const json_t *explanation, FILE *out);

/* help.c: what would help, a line each. */
void explain_help_write(const json_t *explanation, FILE *out);
