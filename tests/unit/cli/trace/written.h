/* Reads the trace file that a test has written (struct out) with a JSON parser. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/trace/out.h"

static inline void written_begin(struct out *out)
{
	*out = (struct out){ .fd = memfd_create("trace", MFD_CLOEXEC) };
	assert_true(out->fd >= 0);
	out_begin(out);
}

/* Ends the file, and returns its contents, which the caller owns. */
static inline json_t *written_end(struct out *out)
{
	json_error_t where;

	out_begin_other(out);
	assert_int_equal(out_end(out), 0);
	assert_int_equal(lseek(out->fd, 0, SEEK_SET), 0);
	json_t *all = json_loadfd(out->fd, JSON_REJECT_DUPLICATES, &where);
	if (!all)
		fail_msg("line %d, column %d: %s", where.line, where.column, where.text);
	close(out->fd);
	return all;
}

static inline const json_t *events_of(const json_t *all)
{
	return json_object_get(all, "traceEvents");
}

/* Returns event number n, from 0, of that phase and name, or NULL. */
static inline const json_t *find_event(const json_t *all, const char *phase, const char *name,
				       size_t n)
{
	const json_t *events = events_of(all);

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *e = json_array_get(events, i);
		if (!strcmp(json_string_value(json_object_get(e, "ph")), phase) &&
		    !strcmp(json_string_value(json_object_get(e, "name")), name) && n-- == 0)
			return e;
	}
	return NULL;
}

static inline double number_of(const json_t *event, const char *key)
{
	const json_t *value = json_object_get(event, key);

	if (!value)
		value = json_object_get(json_object_get(event, "args"), key);
	assert_true(json_is_number(value));
	return json_number_value(value);
}

static inline const char *text_of(const json_t *event, const char *key)
{
	return json_string_value(json_object_get(json_object_get(event, "args"), key));
}
