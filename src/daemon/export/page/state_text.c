#include "daemon/export/page/state_text.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROWS 64

void state_text_open_tenants(struct state_text *s)
{
	json_text_open(&s->json, "tenants", '[');
	s->list_begin = s->json.used;
}

static bool make_room(struct state_text *s)
{
	if (s->count < s->room)
		return true;
	size_t room = s->room ? s->room * 2 : FIRST_ROWS;
	struct state_row *row = reallocarray(s->row, room, sizeof(*row));
	if (!row)
		return false;
	s->row = row;
	s->room = room;
	return true;
}

void state_text_begin_tenant(struct state_text *s, const char *id)
{
	if (!make_room(s)) {
		s->json.failed = true;
		return;
	}
	s->row[s->count] = (struct state_row){ .begin = s->json.used };
	strncpy(s->row[s->count].id, id, TENANT_ID_MAX - 1);
}

void state_text_end_tenant(struct state_text *s)
{
	if (s->json.failed)
		return;
	struct state_row *row = &s->row[s->count++];
	row->begin += s->json.text[row->begin] == ',';
	row->end = s->json.used;
}

void state_text_close_tenants(struct state_text *s)
{
	s->list_end = s->json.used;
	json_text_close(&s->json, ']');
}

void state_text_free(struct state_text *s)
{
	free(json_text_end(&s->json));
	free(s->row);
	*s = (struct state_text){ 0 };
}

static bool is_alike(const struct state_text *a, const struct state_row *x,
		     const struct state_text *b, const struct state_row *y)
{
	size_t size = x->end - x->begin;
	return size == y->end - y->begin &&
	       !memcmp(a->json.text + x->begin, b->json.text + y->begin, size);
}

/* Searches from `first`, which usually matches, since tenants keep their order. Returns before->count if not found. */
static size_t find(const struct state_text *before, size_t first, const char *id)
{
	while (first < before->count && strcmp(before->row[first].id, id) != 0)
		first++;
	return first;
}

static void write_gone(const struct state_text *before, size_t from, size_t to,
		       struct json_text *gone)
{
	for (; from < to; from++)
		json_text_string(gone, NULL, before->row[from].id);
}

static void write_rows(const struct state_text *before, const struct state_text *now,
		       struct json_text *t, struct json_text *gone)
{
	size_t next = 0;
	bool is_first = true;
	for (size_t i = 0; i < now->count; i++) {
		const struct state_row *row = &now->row[i];
		size_t at = find(before, next, row->id);
		bool is_known = at < before->count;
		if (is_known) {
			write_gone(before, next, at, gone);
			next = at + 1;
		}
		if (is_known && is_alike(before, &before->row[at], now, row))
			continue;
		if (!is_first)
			json_text_bytes(t, ",", 1);
		json_text_bytes(t, now->json.text + row->begin, row->end - row->begin);
		is_first = false;
	}
	write_gone(before, next, before->count, gone);
}

void state_text_write_news(const struct state_text *before, const struct state_text *now,
			   struct json_text *t)
{
	struct json_text gone = { 0 };
	json_text_open(&gone, NULL, '[');
	json_text_bytes(t, now->json.text, now->list_begin);
	write_rows(before, now, t, &gone);
	json_text_close(&gone, ']');
	/* Append everything after the list of tenants, except the closing brace. */
	json_text_bytes(t, now->json.text + now->list_end, now->json.used - now->list_end - 1);
	char *ids = json_text_end(&gone);
	if (ids)
		json_text_raw(t, "gone", ids);
	else
		t->failed = true;
	free(ids);
	json_text_close(t, '}');
}
