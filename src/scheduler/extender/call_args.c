#include "scheduler/extender/call_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "kube/util/untrusted_json.h"
#include "scheduler/util/json_quote.h"

#define NAMES "NodeNames"

static const char *skip_spaces(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at;
}

/* `at` is inside a string. */
static const char *end_of_string(const char *at, const char *end)
{
	for (; at < end; at++)
		if (*at == '"')
			return at;
		else if (*at == '\\')
			at++;
	return NULL;
}

/* `at` is after a member's name. Returns the text inside the list that is its value; NULL if it is no list. */
static const char *list_after(const char *at, const char *end)
{
	at = skip_spaces(at, end);
	if (at == end || *at != ':')
		return NULL;
	at = skip_spaces(at + 1, end);
	return at < end && *at == '[' ? at + 1 : NULL;
}

/* Returns the text inside the list NodeNames, or NULL. The JSON library later checks all other text. */
static const char *find_names(const char *at, const char *end)
{
	long depth = 0;
	for (; at < end; at++) {
		if (*at == '{' || *at == '[')
			depth++;
		else if (*at == '}' || *at == ']')
			depth--;
		if (*at != '"')
			continue;
		const char *from = at + 1, *list;
		at = end_of_string(from, end);
		if (!at)
			return NULL;
		if (depth == 1 && (size_t)(at - from) == strlen(NAMES) &&
		    !memcmp(from, NAMES, strlen(NAMES)) && (list = list_after(at + 1, end)))
			return list;
	}
	return NULL;
}

/* Returns NULL if the name needs decoding, which Kubernetes names never do. */
static const char *end_of_name(const char *at, const char *end)
{
	while (at < end && *at >= ' ' && *at <= '~' && *at != '"' && *at != '\\')
		at++;
	return at < end && *at == '"' ? at : NULL;
}

/* Returns the list's closing bracket and the number of names; NULL if there is anything but plain names. */
static const char *end_of_names(const char *at, const char *end, size_t *ret_count)
{
	size_t count = 0;
	at = skip_spaces(at, end);
	while (at < end && *at == '"') {
		at = end_of_name(at + 1, end);
		if (!at)
			return NULL;
		count++;
		at = skip_spaces(at + 1, end);
		if (at == end || *at != ',')
			break;
		at = skip_spaces(at + 1, end);
		if (at < end && *at == ']')
			return NULL;
	}
	*ret_count = count;
	return at < end && *at == ']' ? at : NULL;
}

/* `bytes` is the size of the names' text, which is stored after the array `name`. Takes ownership of `object`. */
static struct call_args *make(json_t *object, size_t count, size_t bytes)
{
	struct call_args *args = malloc(sizeof(*args) + count * sizeof(args->name[0]) + bytes);
	if (!args) {
		json_decref(object);
		return NULL;
	}
	*args = (struct call_args){ .references = 1, .object = object, .count = count };
	return args;
}

/* from..to is a list's text that end_of_names() accepted. */
static struct call_args *make_of_list(json_t *object, const char *from, const char *to, size_t count)
{
	size_t size = (size_t)(to - from);
	struct call_args *args = make(object, count, size);
	if (!args)
		return NULL;
	char *at = (char *)&args->name[count], *end = at + size;
	memcpy(at, from, size);
	args->is_by_names = true;
	for (size_t i = 0; i < count; i++) {
		char *begin = (char *)memchr(at, '"', (size_t)(end - at)) + 1;
		at = memchr(begin, '"', (size_t)(end - begin));
		args->name[i] = (struct call_name){ begin, (uint32_t)(at - begin), true };
		*at++ = '\0';
	}
	return args;
}

static struct call_name name_of(const json_t *text)
{
	const char *name = json_string_value(text);
	if (!name || strlen(name) != json_string_length(text))
		return (struct call_name){ 0 };
	return (struct call_name){ name, (uint32_t)strlen(name), false };
}

struct call_args *call_args_of(json_t *object)
{
	const json_t *nodes = json_object_get(object, "Nodes");
	bool is_whole = json_is_object(nodes);
	const json_t *list = json_object_get(is_whole ? nodes : object, is_whole ? "items" : NAMES);
	struct call_args *args = make(object, json_array_size(list), 0);
	if (!args)
		return NULL;
	args->whole = is_whole ? list : NULL;
	args->is_by_names = !is_whole && (json_is_array(list) || json_is_null(list));
	for (size_t i = 0; i < args->count; i++) {
		const json_t *one = json_array_get(list, i);
		const json_t *meta = json_object_get(one, "metadata");
		args->name[i] = name_of(is_whole ? json_object_get(meta, "name") : one);
	}
	return args;
}

/* Parses `text` without the inside of the list of names. Returns NULL if memory runs out or the text is rejected. */
static json_t *read_rest(const char *text, const char *from, const char *to, const char *end)
{
	size_t before = (size_t)(from - text), behind = (size_t)(end - to);
	cleanup_free char *rest = malloc(before + behind);
	if (!rest)
		return NULL;
	memcpy(rest, text, before);
	memcpy(rest + before, to, behind);
	return untrusted_json_parse(rest, before + behind, JSON_REJECT_DUPLICATES, NULL);
}

int call_args_read(const char *text, size_t size, struct call_args **ret, struct error *err)
{
	json_error_t why;
	size_t count = 0;
	const char *end = text + size, *from = find_names(text, end);
	const char *to = from ? end_of_names(from, end, &count) : NULL;
	json_t *object = to ? read_rest(text, from, to, end) : NULL;
	bool is_taken = object && !json_is_object(json_object_get(object, "Nodes")) &&
			!json_array_size(json_object_get(object, NAMES));
	if (object && !is_taken) {
		json_decref(object);
		object = NULL;
	}
	if (!object)
		object = untrusted_json_parse(text, size, JSON_REJECT_DUPLICATES, &why);
	if (!object && json_error_code(&why) != json_error_out_of_memory) {
		text_clean(why.text); /* it quotes the input */
		return error_set(err, EINVAL, "line %d: %s", why.line, why.text);
	}
	if (is_taken)
		json_object_del(object, NAMES);
	struct call_args *args = is_taken ? make_of_list(object, from, to, count)
				 : object ? call_args_of(object)
					  : NULL;
	if (!args)
		return error_set_errno(err, ENOMEM, "JSON");
	*ret = args;
	return 0;
}

struct call_args *call_args_get(struct call_args *args)
{
	args->references++;
	return args;
}

void call_args_put(struct call_args *args)
{
	if (!args || --args->references)
		return;
	json_decref(args->object);
	free(args);
}

json_t *call_args_names(const struct call_args *args)
{
	json_t *list = json_array();
	for (size_t i = 0; i < args->count; i++) {
		const struct call_name *name = &args->name[i];
		if (json_array_append_new(list, name->text ? json_stringn(name->text, name->length)
							   : json_null()) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

size_t call_name_size(const struct call_name *name)
{
	return name->is_plain ? name->length + strlen("\"\"")
			      : json_quote_size(name->text, name->length);
}

char *call_name_put(char *to, const struct call_name *name)
{
	if (!name->is_plain)
		return json_quote(to, name->text, name->length);
	*to++ = '"';
	memcpy(to, name->text, name->length);
	to += name->length;
	*to++ = '"';
	return to;
}
