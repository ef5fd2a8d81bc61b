#include "cli/doctor/judge/finding.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define INDENT 28 /* columns of level and name before the text */
#define LEAST_TEXT 24
#define REMEDY_MARK "-> "

static const char *const level_names[FINDING_LEVELS] = {
	[FINDING_OK] = "ok",
	[FINDING_NOTE] = "note",
	[FINDING_WARNING] = "warning",
	[FINDING_PROBLEM] = "problem",
};

void findings_free(struct findings *findings)
{
	free(findings->list);
	*findings = (struct findings){ 0 };
}

static struct finding *next_place(struct findings *findings)
{
	if (findings->count == findings->room) {
		size_t room = findings->room ? 2 * findings->room : 32;
		struct finding *list = realloc(findings->list, room * sizeof(*list));
		if (!list)
			return NULL;
		findings->list = list;
		findings->room = room;
	}
	return &findings->list[findings->count++];
}

struct finding *findings_add(struct findings *findings, enum finding_level level, const char *name,
			     const char *format, ...)
{
	struct finding *f = next_place(findings);
	va_list arguments;

	if (!f) {
		/* A finding is lost, so turn the previous one into a problem: the report must not say that all is well. */
		if (findings->count)
			findings->list[findings->count - 1].level = FINDING_PROBLEM;
		return NULL;
	}
	*f = (struct finding){ .level = level };
	snprintf(f->name, sizeof(f->name), "%s", name);
	va_start(arguments, format);
	vsnprintf(f->what, sizeof(f->what), format, arguments);
	va_end(arguments);
	text_clean(f->what);
	return f;
}

void finding_set_remedy(struct finding *finding, const char *format, ...)
{
	va_list arguments;

	if (!finding)
		return;
	va_start(arguments, format);
	vsnprintf(finding->remedy, sizeof(finding->remedy), format, arguments);
	va_end(arguments);
	text_clean(finding->remedy);
}

enum finding_level findings_worst(const struct findings *findings)
{
	enum finding_level worst = FINDING_OK;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->list[i].level > worst)
			worst = findings->list[i].level;
	return worst;
}

size_t findings_count(const struct findings *findings, enum finding_level level)
{
	size_t count = 0;

	for (size_t i = 0; i < findings->count; i++)
		count += findings->list[i].level == level;
	return count;
}

static size_t line_length(const char *text, size_t columns)
{
	size_t length = strlen(text), at;

	if (length <= columns)
		return length;
	for (at = columns; at > 0 && text[at] != ' '; at--)
		;
	if (at == 0)
		at = strcspn(text, " ");
	return at;
}

static void write_wrapped(const char *text, size_t columns, FILE *out)
{
	for (bool first = true; *text; first = false) {
		size_t n = line_length(text, columns);
		fprintf(out, "%*s%.*s\n", first ? 0 : INDENT, "", (int)n, text);
		text += n + strspn(text + n, " ");
	}
}

void findings_write(const struct findings *findings, int width, FILE *out)
{
	size_t columns = width > INDENT + LEAST_TEXT ? (size_t)(width - INDENT) : LEAST_TEXT;

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *f = &findings->list[i];
		fprintf(out, "%-8s %-18s ", level_names[f->level], f->name);
		write_wrapped(f->what, columns, out);
		if (f->remedy[0]) {
			fprintf(out, "%*s", INDENT, REMEDY_MARK);
			write_wrapped(f->remedy, columns, out);
		}
	}
}

static json_t *finding_json(const struct finding *f)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "check", f->name, "level", level_names[f->level],
			 "what", f->what, "remedy",
			 f->remedy[0] ? json_string(f->remedy) : json_null());
}

json_t *findings_json(const struct findings *findings)
{
	json_t *list = json_array();

	for (size_t i = 0; i < findings->count; i++)
		json_array_append_new(list, finding_json(&findings->list[i]));
	return json_pack("{s:i, s:s, s:o}", "version", 1, "worst",
			 level_names[findings_worst(findings)], "findings", list);
}
