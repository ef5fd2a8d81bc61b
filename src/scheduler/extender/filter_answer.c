#include "scheduler/extender/filter_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler/util/json_quote.h"

/* Nodes often share a few reasons, so look for an equal text among this many of the newest ones. */
#define LOOKED_BACK 4
#define ROOM_FIRST 16

struct filter_answer *filter_answer_new(struct call_args *args)
{
	struct filter_answer *answer = calloc(1, sizeof(*answer) +
							 args->count * sizeof(answer->verdict[0]));
	if (!answer)
		return NULL;
	answer->references = 1;
	answer->args = call_args_get(args);
	return answer;
}

struct filter_answer *filter_answer_get(struct filter_answer *answer)
{
	answer->references++;
	return answer;
}

void filter_answer_put(struct filter_answer *answer)
{
	if (!answer || --answer->references)
		return;
	call_args_put(answer->args);
	free(answer->text);
	free(answer->reason);
	free(answer);
}

const char *filter_answer_reason(const struct filter_answer *answer, uint32_t reason)
{
	return answer->text + answer->reason[reason];
}

static int make_room(struct filter_answer *a, size_t size)
{
	if (a->reasons == a->reasons_room) {
		uint32_t room = a->reasons_room ? a->reasons_room * 2 : ROOM_FIRST;
		size_t *reason = realloc(a->reason, room * sizeof(*reason));
		if (!reason)
			return -ENOMEM;
		a->reason = reason;
		a->reasons_room = room;
	}
	if (a->text_used + size > a->text_size) {
		size_t room = (a->text_used + size) * 2;
		char *text = realloc(a->text, room);
		if (!text)
			return -ENOMEM;
		a->text = text;
		a->text_size = room;
	}
	return 0;
}

int filter_answer_add_reason(struct filter_answer *a, const char *text, uint32_t *ret_reason)
{
	const uint32_t reasons = a->reasons;
	for (uint32_t back = 1; back <= reasons && back <= LOOKED_BACK; back++)
		if (!strcmp(filter_answer_reason(a, reasons - back), text)) {
			*ret_reason = reasons - back;
			return 0;
		}
	size_t size = strlen(text) + 1;
	if (make_room(a, size) < 0)
		return -ENOMEM;
	a->reason[reasons] = a->text_used;
	memcpy(a->text + a->text_used, text, size);
	text_clean(a->text + a->text_used);
	a->text_used += size;
	*ret_reason = a->reasons++;
	return 0;
}

/* the reasons as JSON strings */
struct quoted {
	char *text;
	size_t *at; /* offset of each reason, and the end of the last reason */
};

static int quote_words(const struct filter_answer *a, struct quoted *ret)
{
	size_t size = 1;
	for (uint32_t i = 0; i < a->reasons; i++) {
		const char *reason = filter_answer_reason(a, i);
		size += json_quote_size(reason, strlen(reason));
	}
	*ret = (struct quoted){ malloc(size), malloc((a->reasons + 1) * sizeof(*ret->at)) };
	if (!ret->text || !ret->at)
		return -ENOMEM;
	char *to = ret->text;
	for (uint32_t i = 0; i < a->reasons; i++) {
		const char *reason = filter_answer_reason(a, i);
		ret->at[i] = (size_t)(to - ret->text);
		to = json_quote(to, reason, strlen(reason));
	}
	ret->at[a->reasons] = (size_t)(to - ret->text);
	return 0;
}

static size_t quoted_length(const struct quoted *reasons, uint32_t reason)
{
	return reasons->at[reason + 1] - reasons->at[reason];
}

/* Returns the Node objects that fit, as the caller sent them. NULL if memory runs out. */
static char *dump_whole(const struct filter_answer *a)
{
	json_t *fit = json_array(), *list = json_object();
	char *text = NULL;
	for (size_t i = 0; i < a->args->count; i++)
		if (a->verdict[i].list == FILTER_FITS)
			json_array_append(fit, json_array_get(a->args->whole, i));
	if (json_array_size(fit) == a->fits && json_object_set(list, "items", fit) == 0)
		text = json_dumps(list, JSON_COMPACT);
	json_decref(fit);
	json_decref(list);
	return text;
}

/* Returns the size of the answer's text, or slightly more: each name is in at most one list. */
static size_t size_of(const struct filter_answer *a, const struct quoted *reasons, const char *whole)
{
	size_t size = sizeof("{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},"
			     "\"FailedAndUnresolvableNodes\":{},\"Error\":}") +
		      strlen(whole) + json_quote_size(a->error, strlen(a->error));
	for (size_t i = 0; i < a->args->count; i++) {
		const struct filter_verdict *verdict = &a->verdict[i];
		if (verdict->list == FILTER_OMITTED)
			continue;
		size += call_name_size(&a->args->name[i]) + strlen(",");
		if (verdict->list != FILTER_FITS)
			size += quoted_length(reasons, verdict->reason) + strlen(":");
	}
	return size;
}

static char *put_names(char *to, const struct filter_answer *a)
{
	const char *before = "[";
	for (size_t i = 0; i < a->args->count; i++) {
		if (a->verdict[i].list != FILTER_FITS)
			continue;
		to = stpcpy(to, before);
		to = call_name_put(to, &a->args->name[i]);
		before = ",";
	}
	return stpcpy(to, *before == '[' ? "[]" : "]");
}

static char *put_failed(char *to, const struct filter_answer *a, const struct quoted *reasons,
			enum filter_list list)
{
	char before = '{';
	for (size_t i = 0; i < a->args->count; i++) {
		const struct filter_verdict *verdict = &a->verdict[i];
		if (verdict->list != list)
			continue;
		*to++ = before;
		to = call_name_put(to, &a->args->name[i]);
		*to++ = ':';
		size_t length = quoted_length(reasons, verdict->reason);
		memcpy(to, reasons->text + reasons->at[verdict->reason], length);
		to += length;
		before = ',';
	}
	return stpcpy(to, before == '{' ? "{}" : "}");
}

static char *write_text(const struct filter_answer *a, const struct quoted *reasons,
			const char *whole)
{
	size_t size = size_of(a, reasons, whole);
	char *text = malloc(size), *to = text;
	if (!text)
		return NULL;
	to = stpcpy(to, "{\"Nodes\":");
	to = stpcpy(to, whole);
	to = stpcpy(to, ",\"NodeNames\":");
	to = a->args->whole ? stpcpy(to, "null") : put_names(to, a);
	to = stpcpy(to, ",\"FailedNodes\":");
	to = put_failed(to, a, reasons, FILTER_FAILED);
	to = stpcpy(to, ",\"FailedAndUnresolvableNodes\":");
	to = put_failed(to, a, reasons, FILTER_UNRESOLVABLE);
	to = stpcpy(to, ",\"Error\":");
	to = json_quote(to, a->error, strlen(a->error));
	stpcpy(to, "}");
	return text;
}

char *filter_answer_text(const struct filter_answer *a)
{
	struct quoted reasons = { 0 };
	cleanup_free char *whole = a->args->whole ? dump_whole(a) : strdup("null");
	char *text = NULL;
	if (whole && quote_words(a, &reasons) == 0)
		text = write_text(a, &reasons, whole);
	free(reasons.text);
	free(reasons.at);
	return text;
}
