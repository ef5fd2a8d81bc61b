#include "cli/top/data/reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *skip_blanks(const char *c, const char *end)
{
	while (c < end && (*c == ' ' || *c == '\t' || *c == '\n' || *c == '\r'))
		c++;
	return c;
}

static const char *skip_string(const char *c, const char *end)
{
	for (c++; c < end && (c = memchr(c, '"', (size_t)(end - c))); c++) {
		size_t slashes = 0;

		/* This loop ends at the opening quote at the latest. */
		while (c[-1 - (ptrdiff_t)slashes] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			return c + 1;
	}
	return NULL;
}

/* Returns the position after the object or array that begins at c. Checks only brackets and strings. */
static const char *skip_brackets(const char *c, const char *end)
{
	size_t depth = 0;

	while (c && c < end) {
		switch (*c) {
		case '"': c = skip_string(c, end); continue;
		case '{':
		case '[': depth++; break;
		case '}':
		case ']':
			if (--depth == 0)
				return c + 1;
			break;
		default: break;
		}
		c++;
	}
	return NULL;
}

static const char *skip_value(const char *c, const char *end)
{
	const char *begin = c;

	if (c == end)
		return NULL;
	if (*c == '"')
		return skip_string(c, end);
	if (*c == '{' || *c == '[')
		return skip_brackets(c, end);
	while (c < end && *c != ',' && *c != '}' && *c != ']' && *c != ' ' && *c != '\n' &&
	       *c != '\t' && *c != '\r')
		c++;
	return c > begin ? c : NULL;
}

struct span reader_whole(const char *text)
{
	const char *end = text + strlen(text);

	return (struct span){ skip_blanks(text, end), end };
}

static bool stop(struct span *rest)
{
	rest->at = rest->end;
	return false;
}

/* Moves *rest to the next value: behind the opening bracket, or behind a comma. Returns false if no value follows. */
static bool step(struct span *rest, char open, char close)
{
	rest->at = skip_blanks(rest->at, rest->end);
	if (rest->at == rest->end || (*rest->at != open && *rest->at != ','))
		return stop(rest);
	rest->at = skip_blanks(rest->at + 1, rest->end);
	return rest->at < rest->end && *rest->at != close ? true : stop(rest);
}

static bool take_value(struct span *rest, struct span *ret_value)
{
	const char *end = skip_value(rest->at, rest->end);

	if (!end)
		return stop(rest);
	*ret_value = (struct span){ rest->at, end };
	rest->at = end;
	return true;
}

bool reader_element(struct span *rest, struct span *ret_value)
{
	return step(rest, '[', ']') && take_value(rest, ret_value);
}

bool reader_member(struct span *rest, struct span *ret_key, struct span *ret_value)
{
	if (!step(rest, '{', '}') || *rest->at != '"' || !take_value(rest, ret_key))
		return stop(rest);
	rest->at = skip_blanks(rest->at, rest->end);
	if (rest->at == rest->end || *rest->at != ':')
		return stop(rest);
	rest->at = skip_blanks(rest->at + 1, rest->end);
	return take_value(rest, ret_value);
}

bool reader_is_key(struct span key, const char *name)
{
	size_t length = strlen(name);

	return (size_t)(key.end - key.at) == length + 2 && memcmp(key.at + 1, name, length) == 0;
}

bool reader_is(struct span value, const char *word)
{
	size_t length = strlen(word);

	return (size_t)(value.end - value.at) == length && memcmp(value.at, word, length) == 0;
}

struct span reader_find(struct span object, const char *name)
{
	struct span rest = object, key, value;

	while (reader_member(&rest, &key, &value))
		if (reader_is_key(key, name))
			return value;
	return (struct span){ object.end, object.end };
}

static bool is_number(struct span value)
{
	const char *c = value.at < value.end && *value.at == '-' ? value.at + 1 : value.at;

	return c < value.end && *c >= '0' && *c <= '9';
}

bool reader_number(struct span value, double *ret)
{
	char *end;
	double number;

	if (!is_number(value))
		return false;
	/* strtod() stays inside the text, because the text ends with a NUL. */
	number = strtod(value.at, &end);
	if (end != value.end || !isfinite(number))
		return false;
	*ret = number;
	return true;
}

bool reader_whole_number(struct span value, int64_t *ret)
{
	char *end;
	long long number;

	if (!is_number(value))
		return false;
	number = strtoll(value.at, &end, 10);
	if (end != value.end)
		return false;
	*ret = number;
	return true;
}

void reader_text(struct span value, char *ret, size_t size)
{
	json_t *tree = NULL;
	const char *text, *end;
	size_t length;

	*ret = '\0';
	if (value.at == value.end || *value.at != '"')
		return;
	text = value.at + 1;
	length = (size_t)(value.end - value.at) - 2;
	if (memchr(text, '\\', length)) {
		tree = reader_tree(value);
		text = json_string_value(tree);
		length = text ? strlen(text) : 0;
	}
	if (length) {
		end = text_clean_prefix_end(text, length < size - 1 ? length : size - 1);
		memcpy(ret, text, (size_t)(end - text));
		ret[end - text] = '\0';
	}
	json_decref(tree);
}

json_t *reader_tree(struct span value)
{
	return json_loadb(value.at, (size_t)(value.end - value.at), JSON_DECODE_ANY, NULL);
}
