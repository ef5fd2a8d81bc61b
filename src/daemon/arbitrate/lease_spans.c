#include "daemon/arbitrate/lease_spans.h"

#include <stdio.h>

static struct lease_span *span_of(struct lease_spans *s, uint64_t number)
{
	return &s->span[number % LEASE_SPANS_MAX];
}

void lease_spans_note(struct lease_spans *s, uint64_t now_ns, const char *tenant, uint64_t key,
		      struct lease_span_state state)
{
	key = tenant ? key : 0;
	struct lease_span *span = span_of(s, s->last);
	if (key == s->key) {
		s->is_begun = true;
		/* The lease permits launches, so an earlier stop was called off. */
		if (key && !state.is_closing)
			span->closing_ns = 0;
		else if (key && !span->closing_ns)
			span->closing_ns = now_ns;
		return;
	}
	if (s->key) {
		span->end_ns = now_ns;
		span->end = span->is_free ? (struct arbiter_lease_end){ 0 } : state.end;
	}
	bool is_first = !s->is_begun;
	s->is_begun = true;
	s->key = key;
	if (!key)
		return;
	span = span_of(s, ++s->last);
	*span = (struct lease_span){ .begin_ns = now_ns,
				     .number = s->last,
				     .is_free = state.is_free,
				     .began_earlier = is_first };
	snprintf(span->tenant, sizeof(span->tenant), "%s", tenant);
}

size_t lease_spans_since(const struct lease_spans *s, uint64_t since, uint64_t now_ns,
			 struct lease_span ret[LEASE_SPANS_MAX], uint64_t *ret_since)
{
	uint64_t oldest = s->last > LEASE_SPANS_MAX ? s->last - LEASE_SPANS_MAX + 1 : 1;
	uint64_t number = since + 1 > oldest ? since + 1 : oldest;
	size_t count = 0;
	for (; number <= s->last; number++) {
		const struct lease_span *span = &s->span[number % LEASE_SPANS_MAX];
		if (span->begin_ns > now_ns)
			break;
		ret[count] = *span;
		if (span->end_ns > now_ns)
			ret[count].end_ns = 0;
		if (span->closing_ns > now_ns)
			ret[count].closing_ns = 0;
		if (!ret[count++].end_ns)
			break;
	}
	*ret_since = number <= s->last ? number - 1 : s->last;
	return count;
}

uint64_t lease_spans_lost(uint64_t since, uint64_t now_since,
			  const struct lease_span list[LEASE_SPANS_MAX], size_t count)
{
	/* Only the last span of the list may have no end yet. */
	uint64_t ended = count && !list[count - 1].end_ns ? count - 1 : count;
	return now_since > since + ended ? now_since - since - ended : 0;
}
