#include "scheduler/extender/filter_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler/util/json_quote.h"

/* A few reasons without counts often alternate, so compare with this many of the newest. */
#define LOOKED_BACK 4
#define ROOM_FIRST 16

/* ---- life cycle ---- */

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
	free(answer->word);
	free(answer);
}

/* ---- reasons ---- */

const char *filter_answer_word(const struct filter_answer *answer, uint32_t word)
{
	return answer->text + answer->word[word];
}

static int make_room(struct filter_answer *a, size_t size)
{
	if (a->words == a->words_room) {
		uint32_t room = a->words_room ? a->words_room * 2 : ROOM_FIRST;
		size_t *word = realloc(a->word, room * sizeof(*word));
		if (!word)
			return -ENOMEM;
		a->word = word;
		a->words_room = room;
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

int filter_answer_add(struct filter_answer *a, const char *text, uint32_t *ret_word)
{
	const uint32_t words = a->words;
	for (uint32_t back = 1; back <= words && back <= LOOKED_BACK; back++)
		if (!strcmp(filter_answer_word(a, words - back), text)) {
			*ret_word = words - back;
			return 0;
		}
	size_t size = strlen(text) + 1;
	if (make_room(a, size) < 0)
		return -ENOMEM;
	a->word[words] = a->text_used;
	memcpy(a->text + a->text_used, text, size);
	text_clean(a->text + a->text_used);
	a->text_used += size;
	*ret_word = a->words++;
	return 0;
}

/* ---- JSON output ---- */

/* The reasons as JSON strings, quoted once. */
struct quoted {
	char *text;
	size_t *at; /* offset of each reason, and the end of the last */
};

static int quote_words(const struct filter_answer *a, struct quoted *ret)
{
	size_t size = 1;
	for (uint32_t i = 0; i < a->words; i++) {
		const char *word = filter_answer_word(a, i);
		size += json_quote_size(word, strlen(word));
	}
	*ret = (struct quoted){ malloc(size), malloc((a->words + 1) * sizeof(*ret->at)) };
	if (!ret->text || !ret->at)
		return -ENOMEM;
	char *to = ret->text;
	for (uint32_t i = 0; i < a->words; i++) {
		const char *word = filter_answer_word(a, i);
		ret->at[i] = (size_t)(to - ret->text);
		to = json_quote(to, word, strlen(word));
	}
	ret->at[a->words] = (size_t)(to - ret->text);
	return 0;
}

static size_t quoted_length(const struct quoted *words, uint32_t word)
{
	return words->at[word + 1] - words->at[word];
}

static char *put(char *to, const char *text)
{
	return stpcpy(to, text);
}

/* Returns the Node objects that fit, as kube-scheduler sent them, or NULL if memory runs out. */
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

/* Returns the size of the answer's text, or a little more: each name is in one list at most. */
static size_t size_of(const struct filter_answer *a, const struct quoted *words, const char *whole)
{
	size_t size = sizeof("{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},"
			     "\"FailedAndUnresolvableNodes\":{},\"Error\":}") +
		      strlen(whole) + json_quote_size(a->error, strlen(a->error));
	for (size_t i = 0; i < a->args->count; i++) {
		const struct filter_verdict *verdict = &a->verdict[i];
		if (verdict->list == FILTER_NOWHERE)
			continue;
		size += call_name_size(&a->args->name[i]) + strlen(",");
		if (verdict->list != FILTER_FITS)
			size += quoted_length(words, verdict->word) + strlen(":");
	}
	return size;
}

static char *put_names(char *to, const struct filter_answer *a)
{
	const char *before = "[";
	for (size_t i = 0; i < a->args->count; i++) {
		if (a->verdict[i].list != FILTER_FITS)
			continue;
		to = put(to, before);
		to = call_name_put(to, &a->args->name[i]);
		before = ",";
	}
	return put(to, *before == '[' ? "[]" : "]");
}

static char *put_failed(char *to, const struct filter_answer *a, const struct quoted *words,
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
		size_t length = quoted_length(words, verdict->word);
		memcpy(to, words->text + words->at[verdict->word], length);
		to += length;
		before = ',';
	}
	return put(to, before == '{' ? "{}" : "}");
}

static char *write_text(const struct filter_answer *a, const struct quoted *words, const char *whole)
{
	size_t size = size_of(a, words, whole);
	char *text = malloc(size), *to = text;
	if (!text)
		return NULL;
	to = put(to, "{\"Nodes\":");
	to = put(to, whole);
	to = put(to, ",\"NodeNames\":");
	to = a->args->whole ? put(to, "null") : put_names(to, a);
	to = put(to, ",\"FailedNodes\":");
	to = put_failed(to, a, words, FILTER_FAILED);
	to = put(to, ",\"FailedAndUnresolvableNodes\":");
	to = put_failed(to, a, words, FILTER_HOPELESS);
	to = put(to, ",\"Error\":");
	to = json_quote(to, a->error, strlen(a->error));
	put(to, "}");
	return text;
}

char *filter_answer_text(const struct filter_answer *a)
{
	struct quoted words = { 0 };
	cleanup_free char *whole = a->args->whole ? dump_whole(a) : strdup("null");
	char *text = NULL;
	if (whole && quote_words(a, &words) == 0)
		text = write_text(a, &words, whole);
	free(words.text);
	free(words.at);
	return text;
}
