#include "daemon/export/page/history.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct row {
	struct row *next;
	char id[TENANT_ID_MAX];
	unsigned card;
	uint64_t last; /* number of the last sampling that has a sample of this row */
	/* the sample of sampling n is at n % HISTORY_SAMPLES */
	struct history_sample sample[HISTORY_SAMPLES];
	bool is_there[HISTORY_SAMPLES];
};

struct history {
	/* rows: in the order of addition; hint: the row last used by history_add() */
	struct row *rows, *hint;
	unsigned count;
	uint64_t moment; /* number of the latest sampling, from 1; 0: none */
	uint64_t moment_ns[HISTORY_SAMPLES];
};

struct history *history_new(void)
{
	return calloc(1, sizeof(struct history));
}

struct history *history_free(struct history *h)
{
	while (h && h->rows) {
		struct row *row = h->rows;
		h->rows = row->next;
		free(row);
	}
	free(h);
	return NULL;
}

static uint64_t oldest_moment(const struct history *h)
{
	return h->moment > HISTORY_SAMPLES ? h->moment - HISTORY_SAMPLES + 1 : 1;
}

void history_step(struct history *h, uint64_t now_ns)
{
	unsigned place = (unsigned)(++h->moment % HISTORY_SAMPLES);
	h->moment_ns[place] = now_ns;
	h->hint = NULL;
	for (struct row **link = &h->rows, *row; (row = *link);) {
		row->is_there[place] = false;
		if (row->last >= oldest_moment(h)) {
			link = &row->next;
			continue;
		}
		*link = row->next;
		free(row);
		h->count--;
	}
}

static bool is_of(const struct row *row, const char *id, unsigned card)
{
	return row && row->card == card && !strcmp(row->id, id);
}

/* Tenants come in the same order each time, so the row after `hint` usually matches. */
static struct row *find_row(struct history *h, const char *id, unsigned card)
{
	struct row *next = h->hint ? h->hint->next : h->rows;
	if (is_of(next, id, card))
		return next;
	for (struct row *row = h->rows; row; row = row->next)
		if (is_of(row, id, card))
			return row;
	return NULL;
}

static struct row *make_row(struct history *h, const char *id, unsigned card)
{
	struct row **link = &h->rows;
	struct row *row = h->count < HISTORY_ROWS_MAX ? calloc(1, sizeof(*row)) : NULL;
	if (!row)
		return NULL;
	while (*link)
		link = &(*link)->next;
	*link = row;
	h->count++;
	strncpy(row->id, id, sizeof(row->id) - 1);
	row->card = card;
	return row;
}

void history_add(struct history *h, const char *id, unsigned card, struct history_sample sample)
{
	struct row *row = find_row(h, id, card);
	if (!row)
		row = make_row(h, id, card);
	if (!row || !h->moment)
		return;
	row->sample[h->moment % HISTORY_SAMPLES] = sample;
	row->is_there[h->moment % HISTORY_SAMPLES] = true;
	row->last = h->moment;
	h->hint = row;
}

/* `field` is an offset in struct history_sample. */
static float value_of(const struct history_sample *s, size_t field)
{
	return *(const float *)(const void *)((const char *)s + field);
}

static void write_values(const struct history *h, const struct row *row, const char *key,
			 size_t field, struct json_text *t)
{
	json_text_open(t, key, '[');
	for (uint64_t n = oldest_moment(h); n <= h->moment; n++) {
		unsigned place = (unsigned)(n % HISTORY_SAMPLES);
		if (row->is_there[place])
			json_text_real(t, NULL,
				       (double)roundf(value_of(&row->sample[place], field) * 10) /
					       10);
		else
			json_text_null(t, NULL);
	}
	json_text_close(t, ']');
}

static void write_changes(const struct history *h, const struct row *row, const char *key,
			  size_t field, struct json_text *t)
{
	float before = NAN;
	uint64_t oldest = oldest_moment(h);
	json_text_open(t, key, '[');
	for (uint64_t n = oldest; n <= h->moment; n++) {
		unsigned place = (unsigned)(n % HISTORY_SAMPLES);
		float value = value_of(&row->sample[place], field);
		if (!row->is_there[place] || value == before)
			continue;
		before = value;
		json_text_open(t, NULL, '[');
		json_text_whole(t, NULL, (int64_t)(n - oldest));
		json_text_real(t, NULL, (double)value);
		json_text_close(t, ']');
	}
	json_text_close(t, ']');
}

void history_write(const struct history *h, uint64_t now_ns, struct json_text *t)
{
	json_text_whole(t, "every_s", (int64_t)(HISTORY_EVERY_NS / NSEC_PER_SEC));
	json_text_open(t, "ages_s", '[');
	for (uint64_t n = oldest_moment(h); n <= h->moment; n++)
		json_text_real(t, NULL,
			       (double)(now_ns - h->moment_ns[n % HISTORY_SAMPLES]) /
				       (double)NSEC_PER_SEC);
	json_text_close(t, ']');
	json_text_open(t, "tenants", '[');
	for (const struct row *row = h->rows; row; row = row->next) {
		json_text_open(t, NULL, '{');
		json_text_string(t, "id", row->id);
		json_text_whole(t, "index", row->card);
		write_values(h, row, "got_1s_pct", offsetof(struct history_sample, got_pct), t);
		write_changes(h, row, "cores_limit_now_pct",
			      offsetof(struct history_sample, limit_pct), t);
		write_values(h, row, "memory_used_mib", offsetof(struct history_sample, used_mib),
			     t);
		write_changes(h, row, "memory_quota_mib",
			      offsetof(struct history_sample, quota_mib), t);
		json_text_close(t, '}');
	}
	json_text_close(t, ']');
}
