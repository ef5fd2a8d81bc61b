#include "scheduler/page/delta.h"

#include <stdio.h>
#include <stdlib.h>

#include "scheduler/util/digest.h"

static uint64_t digest_of(const struct json_text *t)
{
	return digest_add(DIGEST_FIRST, t->text);
}

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

bool delta_part(uint64_t *sent, const char *key, struct json_text *part, struct json_text *to)
{
	uint64_t digest = digest_of(part);
	bool is_other = digest != *sent;
	if (is_other)
		move(part, key, to);
	*sent = digest;
	forget(part);
	return is_other;
}

void delta_rows_begin(struct delta_writer *w, struct sent_rows *sent)
{
	*w = (struct delta_writer){ .sent = sent };
	json_text_open(&w->keys, "keys", '[');
	json_text_open(&w->rows, "rows", '[');
}

static bool is_sent(const struct sent_rows *sent, uint64_t key, uint64_t digest)
{
	for (unsigned i = 0; i < sent->count; i++)
		if (sent->row[i].key == key)
			return sent->row[i].digest == digest;
	return false;
}

void delta_row(struct delta_writer *w, const char *key)
{
	uint64_t id = digest_add(DIGEST_FIRST, key), digest = digest_of(&w->row);
	if (w->next.count == VIEW_ROWS) {
		forget(&w->row);
		return;
	}
	json_text_string(&w->keys, NULL, key);
	if (!is_sent(w->sent, id, digest)) {
		move(&w->row, NULL, &w->rows);
		w->is_other = true;
	}
	w->next.row[w->next.count].key = id;
	w->next.row[w->next.count++].digest = digest;
	forget(&w->row);
}

void delta_rows_end(struct delta_writer *w, const char *name, size_t seen, unsigned from,
		    struct json_text *to)
{
	char head[64];
	json_text_close(&w->keys, ']');
	json_text_close(&w->rows, ']');
	snprintf(head, sizeof(head), "%zu %u", seen, from);
	w->next.head = digest_add(digest_of(&w->keys), head);
	if (w->is_other || w->next.head != w->sent->head) {
		json_text_open(to, name, '{');
		json_text_whole(to, "seen", (int64_t)seen);
		json_text_whole(to, "from", from);
		move(&w->keys, NULL, to);
		move(&w->rows, NULL, to);
		json_text_close(to, '}');
	}
	*w->sent = w->next;
	forget(&w->keys);
	forget(&w->rows);
}
