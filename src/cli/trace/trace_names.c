#include "cli/trace/trace_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH 0x9e3779b97f4a7c15ULL
#define PLACES (2 * TRACE_NAMES)

/* Returns the key's place in by_key, or an empty place for it. At least half of the places are always empty. */
static size_t place_of(const struct names *names, uint32_t kind, uint64_t key)
{
	size_t at = ((key ^ (uint64_t)kind << 56) * HASH >> 40) % PLACES;

	for (;; at = (at + 1) % PLACES) {
		int32_t i = names->by_key[at];

		if (!i || (names->named[i - 1].key == key && names->named[i - 1].kind == kind))
			return at;
	}
}

int names_add(struct names *names, const struct trace_name *name)
{
	if (names->count == TRACE_NAMES || name->kind < TRACE_NAMES_FUNCTION ||
	    name->kind > TRACE_NAMES_THREAD)
		return 0;
	size_t at = place_of(names, name->kind, name->key);
	struct named *n = &names->named[names->count];
	*n = (struct named){ .key = name->key,
			     .since = name->since,
			     .kind = name->kind,
			     .before = names->by_key[at] - 1,
			     .text = strdup(name->text) };
	if (!n->text)
		return -ENOMEM;
	names->by_key[at] = (int32_t)++names->count;
	return 0;
}

const char *names_find(const struct names *names, enum trace_name_kind kind, uint64_t key,
		       uint64_t ticks)
{
	int32_t i = names->by_key[place_of(names, (uint32_t)kind, key)] - 1;

	/* Another object may have got the same handle later: go back to the name at `ticks`. */
	while (i >= 0 && names->named[i].since > ticks && names->named[i].before >= 0)
		i = names->named[i].before;
	return i >= 0 ? names->named[i].text : NULL;
}

uint32_t names_stream_number(struct names *names, uint64_t handle)
{
	for (size_t i = 0, at = handle * HASH >> 54; i < NAMES_STREAMS; i++, at++) {
		uint32_t *number = &names->stream[at % NAMES_STREAMS].number;

		if (!*number) {
			*number = ++names->stream_count;
			names->stream[at % NAMES_STREAMS].handle = handle;
		}
		if (names->stream[at % NAMES_STREAMS].handle == handle)
			return *number;
	}
	return 0;
}

void names_clear(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->named[i].text);
	memset(names, 0, sizeof(*names));
}
