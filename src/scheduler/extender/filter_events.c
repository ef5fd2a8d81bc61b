#include "scheduler/extender/filter_events.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS_KEPT \
	24 /* limit of reasons, enough for HAMi's and some of allot's; others get no event */
#define COUNT_DIGITS "0123456789"

struct kind {
	char reason[FILTER_REASON_MAX];
	size_t nodes;
	/* first nodes in alphabetical order, so that equal results give equal texts */
	const char *first[FILTER_NAMES_MOST];
	unsigned names;
};

struct kinds {
	struct kind kind[KINDS_KEPT];
	unsigned count;
	size_t nodes;
};

static struct kind *find_kind(struct kinds *kinds, const char *reason, size_t length)
{
	length = length < FILTER_REASON_MAX - 1 ? length : FILTER_REASON_MAX - 1;
	for (unsigned i = 0; i < kinds->count; i++)
		if (!strncmp(kinds->kind[i].reason, reason, length) && !kinds->kind[i].reason[length])
			return &kinds->kind[i];
	if (kinds->count == KINDS_KEPT)
		return NULL;
	struct kind *kind = &kinds->kind[kinds->count++];
	memcpy(kind->reason, reason, length);
	return kind;
}

static void add_node(struct kind *kind, const char *name)
{
	kind->nodes++;
	unsigned at = kind->names;
	while (at && strcmp(name, kind->first[at - 1]) < 0)
		at--;
	if (at == FILTER_NAMES_MOST)
		return;
	kind->names += kind->names < FILTER_NAMES_MOST;
	memmove(&kind->first[at + 1], &kind->first[at],
		(kind->names - at - 1) * sizeof(kind->first[0]));
	kind->first[at] = name;
}

/* Returns the reason after a count, as in "3/8 CardInsufficientMemory"; NULL without a count. */
static const char *skip_count(const char *part)
{
	size_t cards = strspn(part, COUNT_DIGITS);
	size_t all = part[cards] == '/' ? strspn(part + cards + 1, COUNT_DIGITS) : 0;
	const char *reason = part + cards + 1 + all;
	return cards && all && *reason == ' ' ? reason + 1 : NULL;
}

/* A text with counts may have several reasons; any other text is one reason. */
static void add_text(struct kinds *kinds, const char *node, const char *text)
{
	kinds->nodes++;
	for (const char *part = text; part;) {
		const char *reason = skip_count(part);
		const char *end = reason ? strstr(reason, ", ") : NULL;
		const char *from = reason ? reason : part;
		struct kind *kind = find_kind(kinds, from,
					      end ? (size_t)(end - from) : strlen(from));
		if (kind)
			add_node(kind, node);
		part = end ? end + 2 : NULL;
	}
}

static void add_all(struct kinds *kinds, const struct filter_answer *answer)
{
	for (size_t i = 0; i < answer->args->count; i++) {
		const struct filter_verdict *verdict = &answer->verdict[i];
		if (verdict->list == FILTER_FAILED || verdict->list == FILTER_UNRESOLVABLE)
			add_text(kinds, answer->args->name[i].text,
				 filter_answer_reason(answer, verdict->reason));
	}
}

static int compare_kinds(const void *a, const void *b)
{
	const struct kind *left = a, *right = b;
	if (left->nodes != right->nodes)
		return left->nodes > right->nodes ? -1 : 1;
	return strcmp(left->reason, right->reason);
}

static void write_kind(const struct kind *kind, struct filter_event *ret)
{
	size_t at = (size_t)snprintf(ret->text, sizeof(ret->text), "%zu nodes %s(", kind->nodes,
				     kind->reason);
	bool is_cut = kind->nodes > kind->names;
	for (unsigned i = 0; i < kind->names; i++) {
		size_t length = strlen(kind->first[i]);
		if (at + length + sizeof(",,...)") > sizeof(ret->text)) {
			is_cut = true;
			break;
		}
		at += (size_t)snprintf(ret->text + at, sizeof(ret->text) - at, "%s%s", i ? "," : "",
				       kind->first[i]);
	}
	snprintf(ret->text + at, sizeof(ret->text) - at, "%s)", is_cut ? ",..." : "");
	strcpy(ret->reason, kind->reason);
}

unsigned filter_failure_events(const struct filter_answer *answer,
			       struct filter_event ret[FILTER_EVENTS_MAX])
{
	struct kinds kinds = { 0 };
	unsigned count = 0;
	add_all(&kinds, answer);
	qsort(kinds.kind, kinds.count, sizeof(kinds.kind[0]), compare_kinds);
	for (; count < kinds.count && count < FILTER_KINDS_MOST; count++)
		write_kind(&kinds.kind[count], &ret[count]);
	*ret[count].reason = '\0';
	snprintf(ret[count].text, sizeof(ret[count].text),
		 "no available node, %zu nodes do not meet", kinds.nodes);
	return count + 1;
}

void filter_success_text(const char *node, double score, size_t fit, size_t unfit, char *text,
			 size_t size)
{
	snprintf(text, size,
		 "find fit node(%.253s), %zu nodes not fit, %zu nodes fit(%.253s:%.2f%s)", node,
		 unfit, fit, node, score, fit > 1 ? ",..." : "");
}
