#include "cli/top/data/key_change.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/format.h"

struct change_row {
	const char *op;
	const char *verb;
	const char *what;  /* name of the value to change, such as "memory"; NULL if none */
	const char *field; /* the value's key in the request */
	const char *unit;
	const char *example;
	bool is_of_card;
};

static const struct change_row rows[] = {
	[CHANGE_PAUSE] = { .op = "pause", .verb = "pause" },
	[CHANGE_SWAP_OUT] = { .op = "pause", .verb = "pause and swap out" },
	[CHANGE_RESUME] = { .op = "resume", .verb = "resume" },
	[CHANGE_MEMORY] = { "set", NULL, "memory", "memory_bytes", "", "6GiB", true },
	[CHANGE_CORES] = { "set", NULL, "cores", "cores_pct", " %", "30", true },
	[CHANGE_CORES_LIMIT] = { "set", NULL, "cores limit", "cores_limit_pct", " %", "60", true },
	[CHANGE_PRIORITY] = { "set", NULL, "priority", "priority", "", "10", false },
};

void change_begin(enum change_kind kind, const struct snapshot *snapshot, size_t i,
		  struct change *ret_change)
{
	const struct top_share *share = &snapshot->shares[i];
	const struct top_tenant *tenant = &snapshot->tenants[share->tenant];
	struct change change = { .kind = kind, .card = share->card };

	strcpy(change.id, tenant->id);
	strcpy(change.name, tenant->name);
	if (kind == CHANGE_MEMORY && share->has_quota)
		format_bytes(share->quota_bytes, change.was);
	else if (kind == CHANGE_CORES && share->has_asked)
		format_asked_pct(share->requested_pct, change.was);
	else if (kind == CHANGE_CORES_LIMIT)
		format_asked_pct(share->limit_pct, change.was);
	else if (kind == CHANGE_PRIORITY)
		snprintf(change.was, sizeof(change.was), "%lld", (long long)tenant->priority);
	else
		strcpy(change.was, "none");
	*ret_change = change;
}

bool change_wants_value(const struct change *change)
{
	return rows[change->kind].what;
}

static void describe_tenant(const struct change *change, char *ret, size_t size)
{
	if (rows[change->kind].is_of_card)
		snprintf(ret, size, "%.63s on GPU %d", change->name, change->card);
	else
		snprintf(ret, size, "%.63s", change->name);
}

/* Writes for example "4.0 GiB" or "30 %"; no unit if there is no value. */
static void describe_old(const struct change *change, char *ret, size_t size)
{
	const char *unit = strcmp(change->was, "none") == 0 ? "" : rows[change->kind].unit;

	snprintf(ret, size, "%s%s", change->was, unit);
}

void change_ask(const struct change *change, char ret[CHANGE_TEXT_MAX])
{
	const struct change_row *row = &rows[change->kind];
	char whose[96], was[48];

	describe_tenant(change, whose, sizeof(whose));
	describe_old(change, was, sizeof(was));
	snprintf(ret, CHANGE_TEXT_MAX, "%s of %s is %s; write for example %s", row->what, whose,
		 was, row->example);
}

int change_read(struct change *change, const char *text, struct error *err)
{
	switch (change->kind) {
	case CHANGE_MEMORY: return parse_size(text, &change->to.bytes, err);
	case CHANGE_CORES:
	case CHANGE_CORES_LIMIT: return parse_cores(text, &change->to.pct, err);
	case CHANGE_PRIORITY:
		return parse_int(text, -PRIORITY_MOST, PRIORITY_MOST, &change->to.number, err);
	default: return 0;
	}
}

void change_describe(const struct change *change, char ret[CHANGE_TEXT_MAX])
{
	const struct change_row *row = &rows[change->kind];
	char whose[96], was[48], to[FORMAT_MAX];

	describe_tenant(change, whose, sizeof(whose));
	describe_old(change, was, sizeof(was));
	if (!row->what) {
		snprintf(ret, CHANGE_TEXT_MAX, "%s %s", row->verb, whose);
		return;
	}
	if (change->kind == CHANGE_MEMORY)
		format_bytes(change->to.bytes, to);
	else if (change->kind == CHANGE_PRIORITY)
		snprintf(to, sizeof(to), "%lld", (long long)change->to.number);
	else
		format_asked_pct(change->to.pct, to);
	snprintf(ret, CHANGE_TEXT_MAX, "set %s of %s to %s%s, now %s", row->what, whose, to,
		 row->unit, was);
}

static json_t *value_of(const struct change *change)
{
	if (change->kind == CHANGE_MEMORY)
		return json_integer((json_int_t)change->to.bytes);
	if (change->kind == CHANGE_PRIORITY)
		return json_integer(change->to.number);
	return json_real(change->to.pct);
}

json_t *change_request(const struct change *change, const char **ret_op)
{
	const struct change_row *row = &rows[change->kind];

	*ret_op = row->op;
	if (change->kind == CHANGE_SWAP_OUT)
		return json_pack("{s:s, s:b}", "name", change->id, "swap_out", 1);
	if (!row->what)
		return json_pack("{s:s}", "name", change->id);
	if (!row->is_of_card)
		return json_pack("{s:s, s:o}", "name", change->id, row->field, value_of(change));
	return json_pack("{s:s, s:[{s:i, s:o}]}", "name", change->id, "devices", "index",
			 change->card, row->field, value_of(change));
}
