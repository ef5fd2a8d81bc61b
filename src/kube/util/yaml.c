#include "kube/util/yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define YAML_DEPTH_MAX 32

struct line {
	unsigned number; /* in the file, from 1 */
	size_t indent;
	char *text; /* without indentation, comment and white space at its end; never "" */
};

struct reader {
	struct line *line;
	size_t count, next;
	struct error *err;
};

static int read_block(struct reader *r, size_t indent, unsigned depth, json_t **ret);

static int complain(const struct reader *r, const char *what)
{
	unsigned number = r->next < r->count ? r->line[r->next].number : 0;
	return error_set(r->err, EINVAL, "line %u: %s", number, what);
}

/* Whether the character at `c`, in a text quoted by `quote`, escapes the next character. */
static bool is_escape(char quote, const char *c)
{
	return (quote == '"' && *c == '\\' && c[1]) ||
	       (quote == '\'' && *c == quote && c[1] == quote);
}

/* A comment begins with a '#' at the start or after white space, outside quotes. Returns NULL if there is none. */
static char *find_comment(char *text)
{
	char quote = 0;
	for (char *c = text; *c; c++) {
		if (is_escape(quote, c))
			c++;
		else if (quote)
			quote = *c == quote ? 0 : quote;
		else if ((*c == '"' || *c == '\'') && (c == text || strchr(" :-", c[-1])))
			quote = *c;
		else if (*c == '#' && (c == text || c[-1] == ' ' || c[-1] == '\t'))
			return c;
	}
	return NULL;
}

static int split(struct reader *r, char *text)
{
	unsigned number = 0;
	for (char *part; (part = strsep(&text, "\n"));) {
		size_t indent = strspn(part, " ");
		struct line line = { .number = ++number, .indent = indent, .text = part + indent };
		char *comment = find_comment(line.text);
		if (comment)
			*comment = '\0';
		size_t length = strlen(line.text);
		while (length && strchr(" \t\r", line.text[length - 1]))
			line.text[--length] = '\0';
		if (!length || (!indent && (!strcmp(part, "---") || part[0] == '%')))
			continue;
		r->line[r->count++] = line;
		r->next = r->count - 1;
		if (*line.text == '\t')
			return complain(r, "must be indented by spaces, not tabs");
		if (!indent && !strcmp(part, "..."))
			r->count--, text = NULL;
	}
	r->next = 0;
	return 0;
}

/* Removes the quotes in place. Returns false if the text does not end with the closing quote, or an escape is unknown. */
static bool unquote(char *text)
{
	char quote = *text, *to = text;
	for (char *c = text + 1; *c; c++) {
		if (*c == quote && quote == '\'' && c[1] == '\'') {
			c++;
		} else if (*c == quote) {
			*to = '\0';
			return c[1] == '\0';
		} else if (*c == '\\' && quote == '"') {
			static const char from[] = "nrt0\"\\/ ", into[] = "\n\r\t\0\"\\/ ";
			const char *which = *++c ? strchr(from, *c) : NULL;
			if (!which || *c == '0')
				return false;
			*to++ = into[which - from];
			continue;
		}
		*to++ = *c;
	}
	return false;
}

static int read_scalar(const struct reader *r, char *text, json_t **ret)
{
	if (!strcmp(text, "{}"))
		*ret = json_object();
	else if (!strcmp(text, "[]"))
		*ret = json_array();
	else if (!strcmp(text, "~") || !strcmp(text, "null"))
		*ret = json_null();
	else if (!strcmp(text, "true") || !strcmp(text, "false"))
		*ret = json_boolean(*text == 't');
	else if (strchr("{[&*!|>%@`", *text))
		return complain(
			r,
			"this form of YAML is not understood: write each entry on a line of its own");
	else if ((*text == '"' || *text == '\'') && !unquote(text))
		return complain(r, "a quoted text must end in its line");
	else
		*ret = json_string(text);
	return *ret ? 0 : complain(r, "must be UTF-8");
}

/*
 * Reads the value after "key:" or "-": on the same line, or in the block below it, or missing (null). If may_be_beside is true,
 * a sequence in the lines below may be indented like the key.
 */
static int read_value(struct reader *r, char *text, size_t indent, bool may_be_beside,
		      unsigned depth, json_t **ret)
{
	if (*text) {
		int status = read_scalar(r, text, ret);
		r->next++;
		return status;
	}
	r->next++;
	const struct line *below = r->next < r->count ? &r->line[r->next] : NULL;
	bool is_sequence = below && below->text[0] == '-' && strchr(" ", below->text[1]);
	if (below &&
	    (below->indent > indent || (may_be_beside && below->indent == indent && is_sequence)))
		return read_block(r, below->indent, depth + 1, ret);
	*ret = json_null();
	return 0;
}

/* Returns the colon that ends a key, or NULL if the line has none. */
static char *find_colon(char *text)
{
	char *from = text;
	if (*text == '"' || *text == '\'') {
		for (from++; *from; from++) {
			if (is_escape(*text, from))
				from++;
			else if (*from == *text)
				break;
		}
	}
	for (char *c = from; *c; c++)
		if (*c == ':' && (!c[1] || c[1] == ' ' || c[1] == '\t'))
			return c;
	return NULL;
}

static int read_mapping(struct reader *r, size_t indent, unsigned depth, json_t *object)
{
	while (r->next < r->count && r->line[r->next].indent == indent) {
		char *key = r->line[r->next].text, *colon = find_colon(key);
		if (!colon)
			return complain(r, "must be 'key: value'");
		*colon = '\0';
		char *value = colon + 1 + strspn(colon + 1, " \t");
		if ((*key == '"' || *key == '\'') && !unquote(key))
			return complain(r, "a quoted key must end in its line");
		if (json_object_get(object, key))
			return complain(r, "the key appears twice");
		json_t *member = NULL;
		int status = read_value(r, value, indent, true, depth, &member);
		if (status < 0)
			return status;
		if (json_object_set_new(object, key, member) < 0)
			return complain(r, "must be UTF-8");
	}
	if (r->next < r->count && r->line[r->next].indent > indent)
		return complain(r, "is indented too far");
	return 0;
}

static int read_sequence(struct reader *r, size_t indent, unsigned depth, json_t *array)
{
	while (r->next < r->count && r->line[r->next].indent == indent &&
	       r->line[r->next].text[0] == '-') {
		struct line *line = &r->line[r->next];
		size_t skip = 1 + strspn(line->text + 1, " ");
		char *rest = line->text + skip;
		json_t *item = NULL;
		int status;
		if (line->text[1] && skip == 1)
			return complain(r, "must be '- value'");
		if (*rest && !strchr("\"'{[", *rest) && find_colon(rest)) {
			/* A mapping begins on the same line as the "-": treat the rest of the line as a line of its own. */
			line->indent = indent + skip;
			line->text = rest;
			status = read_block(r, line->indent, depth + 1, &item);
		} else {
			status = read_value(r, rest, indent, false, depth, &item);
		}
		if (status < 0)
			return status;
		json_array_append_new(array, item);
	}
	if (r->next < r->count && r->line[r->next].indent > indent)
		return complain(r, "is indented too far");
	return 0;
}

static int read_block(struct reader *r, size_t indent, unsigned depth, json_t **ret)
{
	const char *text = r->line[r->next].text;
	bool is_sequence = text[0] == '-' && (!text[1] || text[1] == ' ');
	if (depth > YAML_DEPTH_MAX)
		return complain(r, "is nested too deeply");
	json_t *value = is_sequence ? json_array() : json_object();
	int status = is_sequence ? read_sequence(r, indent, depth, value)
				 : read_mapping(r, indent, depth, value);
	if (status < 0) {
		json_decref(value);
		return status;
	}
	*ret = value;
	return 0;
}

static int parse_json(const char *text, json_t **ret, struct error *err)
{
	json_error_t why;
	json_t *value = json_loads(text, 0, &why);
	if (!value)
		return error_set(err, EINVAL, "line %d: %s", why.line, why.text);
	*ret = value;
	return 0;
}

int yaml_parse(const char *text, json_t **ret, struct error *err)
{
	if (text[strspn(text, " \t\r\n")] == '{')
		return parse_json(text, ret, err);
	size_t lines = 1;
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	cleanup_free char *copy = strdup(text);
	cleanup_free struct line *line = calloc(lines, sizeof(*line));
	struct reader r = { .line = line, .err = err };
	if (!copy || !line)
		return error_set_errno(err, ENOMEM, "YAML");
	int status = split(&r, copy);
	if (status < 0)
		return status;
	if (!r.count)
		return error_set(err, EINVAL, "it is empty");
	json_t *value = NULL;
	status = read_block(&r, r.line[0].indent, 0, &value);
	if (status >= 0 && r.next < r.count)
		status = complain(&r, "is indented less than what is before it");
	if (status < 0) {
		json_decref(value);
		return status;
	}
	*ret = value;
	return 0;
}
