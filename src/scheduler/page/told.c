#include "scheduler/page/told.h"

#include <stdio.h>
#include <stdlib.h>

#include "scheduler/util/digest.h"

static uint64_t digest_of(const struct json_text *t)
{
	return digest_add(DIGEST_FIRST, t->text);
}

/* Adds `from`'s text to `to` as member `key`. If `from` ran out of memory, so has `to`. */
static void move(struct json_text *from, const char *key, struct json_text *to)
{
	if (from->failed || !from->text)
		to->failed = true;
	else
		json_text_raw(to, key, from->text);
}

static void forget(struct json_text *t)
{
	free(json_text_end(t));
}

bool told_part(uint64_t *told, const char *key, struct json_text *part, struct json_text *to)
{
	uint64_t digest = digest_of(part);
	bool is_other = digest != *told;
	if (is_other)
		move(part, key, to);
	*told = digest;
	forget(part);
	return is_other;
}

void told_rows_begin(struct told_writing *w, struct told_rows *told)
{
	*w = (struct told_writing){ .told = told };
	json_text_open(&w->keys, "keys", '[');
	json_text_open(&w->rows, "rows", '[');
}

static bool is_told(const struct told_rows *told, uint64_t key, uint64_t said)
{
	for (unsigned i = 0; i < told->count; i++)
		if (told->row[i].key == key)
			return told->row[i].said == said;
	return false;
}

void told_row(struct told_writing *w, const char *key)
{
	uint64_t id = digest_add(DIGEST_FIRST, key), said = digest_of(&w->row);
	if (w->next.count == VIEW_ROWS) {
		forget(&w->row);
		return;
	}
	json_text_string(&w->keys, NULL, key);
	if (!is_told(w->told, id, said)) {
		move(&w->row, NULL, &w->rows);
		w->is_other = true;
	}
	w->next.row[w->next.count].key = id;
	w->next.row[w->next.count++].said = said;
	forget(&w->row);
}

void told_rows_end(struct told_writing *w, const char *name, size_t seen, unsigned from,
		   struct json_text *to)
{
	char head[64];
	json_text_close(&w->keys, ']');
	json_text_close(&w->rows, ']');
	snprintf(head, sizeof(head), "%zu %u", seen, from);
	w->next.head = digest_add(digest_of(&w->keys), head);
	if (w->is_other || w->next.head != w->told->head) {
		json_text_open(to, name, '{');
		json_text_whole(to, "seen", (int64_t)seen);
		json_text_whole(to, "from", from);
		move(&w->keys, NULL, to);
		move(&w->rows, NULL, to);
		json_text_close(to, '}');
	}
	*w->told = w->next;
	forget(&w->keys);
	forget(&w->rows);
}
