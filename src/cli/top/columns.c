#include "cli/top/columns.h"

#include <string.h>

#include "cli/format.h"
#include "cli/top/bars.h"
#include "cli/top/utf8.h"

#define GAP 1
#define NAME_LEAST 8
/* Without room, columns of low rank go first. Names shrink below NAME_FAIR only when ranks below RANK_FAIR are gone. */
#define NAME_FAIR 16
#define NAME_MOST 32
#define RANK_FAIR 20
#define LENT_LEAST 0.5 /* percent; a smaller lent share is not shown: it would be rounded to 0 */

enum column {
	COLUMN_TENANT,
	COLUMN_GPU,
	COLUMN_STATE,
	COLUMN_COMPUTE,
	COLUMN_GOT,
	COLUMN_ASKED,
	COLUMN_LIMIT,
	COLUMN_GOT_60S,
	COLUMN_MEMORY,
	COLUMN_USED,
	COLUMN_QUOTA,
	COLUMN_SWAPPED,
	COLUMN_HISTORY,
	COLUMN_LEASES,
	COLUMN_STEP_P50,
	COLUMN_STEP_P99,
	COLUMN_STEP_RATE,
	COLUMN_WAIT,
	COLUMN_REFUSED,
	COLUMN_PRIORITY,
	COLUMN_VIOLATIONS,
	COLUMN_CONTAINER,
	COLUMN_COUNT,
};

_Static_assert(COLUMN_COUNT <= COLUMNS_MAX, "columns.h has room for them");

struct subject {
	const struct top_share *share;
	const struct top_tenant *tenant;
	const struct history_rates *rates;
	const struct history_series *series;
};

struct place {
	struct cells *cells;
	int line, column, width;
};

static void put_left(const struct place *at, enum style style, const char *text)
{
	cells_put(at->cells, at->line, at->column, at->width, style, text);
}

static void put_right(const struct place *at, enum style style, const char *text)
{
	cells_put_right(at->cells, at->line, at->column, at->width, style, text);
}

void columns_short_bytes(uint64_t bytes, char ret[COLUMNS_SHORT_MAX])
{
	static const char units[] = "BKMGTP";
	double value = (double)bytes;
	size_t i = 0;

	/* A value of 999.5 or more would print as 1000 or more, so use the next unit. */
	while (value >= 999.5 && units[i + 1]) {
		value /= 1024;
		i++;
	}
	snprintf(ret, COLUMNS_SHORT_MAX, i && value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[i]);
}

void columns_short_pct(double pct, char ret[COLUMNS_SHORT_MAX])
{
	snprintf(ret, COLUMNS_SHORT_MAX, pct < 99.95 ? "%.1f" : "%.0f", pct);
}

void columns_short_seconds(double seconds, char ret[COLUMNS_SHORT_MAX])
{
	double hours = seconds / 3600;

	if (seconds < 99.5)
		snprintf(ret, COLUMNS_SHORT_MAX, seconds < 9.95 ? "%.1fs" : "%.0fs", seconds);
	else if (hours < 1)
		snprintf(ret, COLUMNS_SHORT_MAX, "%.0fm", seconds / 60);
	else
		snprintf(ret, COLUMNS_SHORT_MAX, "%.0fh", hours < 99999 ? hours : 99999);
}

static void draw_name(const struct subject *of, const struct place *at)
{
	put_left(at, STYLE_STRONG, of->tenant->name);
}

static void draw_gpu(const struct subject *of, const struct place *at)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", of->share->card);
	put_right(at, STYLE_PLAIN, text);
}

static void draw_state(const struct subject *of, const struct place *at)
{
	const char *state = of->tenant->state;
	bool is_quiet = strcmp(state, "idle") == 0 || strcmp(state, "starting") == 0;
	bool stands = strcmp(state, "queued") == 0 || strcmp(state, "paused") == 0 ||
		      strcmp(state, "leaving") == 0 || strcmp(state, "swapped") == 0 ||
		      strcmp(state, "returning") == 0;
	char text[64];

	if (of->tenant->is_queued)
		snprintf(text, sizeof(text), "%s#%llu", state,
			 (unsigned long long)of->tenant->place);
	else
		snprintf(text, sizeof(text), "%s", state);
	put_left(at, stands ? STYLE_WARNING : is_quiet ? STYLE_DIM : STYLE_PLAIN, text);
}

static void draw_compute(const struct subject *of, const struct place *at)
{
	const struct top_share *share = of->share;
	struct bar bar = { .got = share->got_1s_pct / 100,
			   .has_asked = share->has_asked,
			   .asked = share->guaranteed_pct / 100,
			   .has_limit = true,
			   .limit = share->limit_now_pct / 100 };

	bar_draw(at->cells, at->line, at->column, at->width, &bar);
}

static void draw_pct(const struct place *at, bool is_there, double pct)
{
	char text[COLUMNS_SHORT_MAX] = "-";

	if (is_there)
		columns_short_pct(pct, text);
	put_right(at, STYLE_PLAIN, text);
}

static void draw_got(const struct subject *of, const struct place *at)
{
	draw_pct(at, of->share->has_got, of->share->got_1s_pct);
}

static void draw_got_60s(const struct subject *of, const struct place *at)
{
	draw_pct(at, of->share->has_got, of->share->got_60s_pct);
}

static void draw_asked(const struct subject *of, const struct place *at)
{
	char text[FORMAT_MAX] = "-";

	if (of->share->has_asked)
		format_asked_pct(of->share->guaranteed_pct, text);
	put_right(at, STYLE_PLAIN, text);
}

static void draw_limit(const struct subject *of, const struct place *at)
{
	char limit[FORMAT_MAX], text[FORMAT_MAX + 16];

	format_asked_pct(of->share->limit_pct, limit);
	if (of->share->lent_pct >= LENT_LEAST)
		snprintf(text, sizeof(text), "%s+%.0f", limit, of->share->lent_pct);
	else
		snprintf(text, sizeof(text), "%s", limit);
	put_right(at, STYLE_PLAIN, text);
}

static void draw_memory(const struct subject *of, const struct place *at)
{
	const struct top_share *share = of->share;
	double quota = share->has_quota ? (double)share->quota_bytes : 0;
	struct bar bar = { .has_asked = true, .asked = 1 };

	if (quota <= 0)
		return;
	bar.got = (double)share->used_bytes / quota;
	bar.away = (double)share->swapped_bytes / quota;
	bar_draw(at->cells, at->line, at->column, at->width, &bar);
}

static void draw_bytes(const struct place *at, bool is_there, uint64_t bytes)
{
	char text[COLUMNS_SHORT_MAX] = "-";

	if (is_there)
		columns_short_bytes(bytes, text);
	put_right(at, STYLE_PLAIN, text);
}

static void draw_used(const struct subject *of, const struct place *at)
{
	draw_bytes(at, true, of->share->used_bytes);
}

static void draw_quota(const struct subject *of, const struct place *at)
{
	draw_bytes(at, of->share->has_quota, of->share->quota_bytes);
}

static void draw_swapped(const struct subject *of, const struct place *at)
{
	draw_bytes(at, of->tenant->swap.is_set, of->share->swapped_bytes);
}

static void draw_history(const struct subject *of, const struct place *at)
{
	spark_draw(at->cells, at->line, at->column, at->width, 1, of->series->got,
		   of->series->count);
}

static void draw_leases(const struct subject *of, const struct place *at)
{
	char text[FORMAT_MAX] = "-";

	if (of->rates->is_set)
		snprintf(text, sizeof(text), of->rates->leases_per_s < 99.95 ? "%.1f" : "%.0f",
			 of->rates->leases_per_s);
	put_right(at, STYLE_PLAIN, text);
}

static void draw_if_step(const struct subject *of, const struct place *at, double value,
			 void (*format)(double value, char text[FORMAT_MAX]))
{
	char text[FORMAT_MAX] = "-";

	if (of->share->has_steps)
		format(value, text);
	put_right(at, STYLE_PLAIN, text);
}

static void draw_step_p50(const struct subject *of, const struct place *at)
{
	draw_if_step(of, at, of->share->step_p50_ms, format_ms);
}

static void draw_step_p99(const struct subject *of, const struct place *at)
{
	draw_if_step(of, at, of->share->step_p99_ms, format_ms);
}

static void draw_step_rate(const struct subject *of, const struct place *at)
{
	draw_if_step(of, at, of->share->steps_per_s, format_rate);
}

/* A queued tenant's time in the queue. For another tenant, the mean number of its threads that wait for GPU time. */
static void draw_wait(const struct subject *of, const struct place *at)
{
	char text[FORMAT_MAX] = "-";

	if (of->tenant->is_queued) {
		columns_short_seconds(of->tenant->queued_s, text);
		put_right(at, STYLE_WARNING, text);
		return;
	}
	if (of->rates->is_set)
		snprintf(text, sizeof(text), of->rates->waiting < 9.995 ? "%.2f" : "%.0f",
			 of->rates->waiting);
	put_right(at, STYLE_PLAIN, text);
}

static void draw_refused(const struct subject *of, const struct place *at)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)of->share->denied);
	put_right(at, of->rates->denied ? STYLE_WARNING : STYLE_PLAIN, text);
}

static void draw_priority(const struct subject *of, const struct place *at)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)of->tenant->priority);
	put_right(at, STYLE_PLAIN, text);
}

static void draw_violations(const struct subject *of, const struct place *at)
{
	char text[64];

	if (!of->tenant->violations) {
		put_left(at, STYLE_PLAIN, "-");
		return;
	}
	snprintf(text, sizeof(text), "%llu %s", (unsigned long long)of->tenant->violations,
		 *of->tenant->offence ? of->tenant->offence : "gone");
	put_left(at, STYLE_WARNING, text);
}

static void draw_container(const struct subject *of, const struct place *at)
{
	put_left(at, STYLE_PLAIN, *of->tenant->container ? of->tenant->container : "-");
}

static bool can_swap(const struct top_tenant *tenant, const struct top_share *share)
{
	return tenant->swap.is_set;
}

static bool has_steps(const struct top_tenant *tenant, const struct top_share *share)
{
	return share->has_steps;
}

static bool has_priority(const struct top_tenant *tenant, const struct top_share *share)
{
	return tenant->priority != 0;
}

static bool has_violations(const struct top_tenant *tenant, const struct top_share *share)
{
	return tenant->violations;
}

static bool has_container(const struct top_tenant *tenant, const struct top_share *share)
{
	return *tenant->container;
}

struct column_row {
	const char *title;
	int least, most;    /* in characters */
	int rank;           /* without room, the column with the lowest rank is dropped first */
	bool is_text;       /* the title is aligned left */
	enum order_key key; /* the sort order for this column; ORDER_COUNT if there is none */
	void (*draw)(const struct subject *of, const struct place *at);
	/* whether the share has a value in this column; if NULL, the column is always needed */
	bool (*is_needed)(const struct top_tenant *tenant, const struct top_share *share);
};

static const struct column_row rows_of[COLUMN_COUNT] = {
	[COLUMN_TENANT] = { "TENANT", NAME_LEAST, NAME_LEAST, 100, true, ORDER_NAME, draw_name },
	[COLUMN_GPU] = { "GPU", 3, 3, 80, false, ORDER_CARD, draw_gpu },
	[COLUMN_STATE] = { "STATE", 8, 9, 70, true, ORDER_STATE, draw_state },
	[COLUMN_COMPUTE] = { "COMPUTE", 7, 30, 30, true, ORDER_COUNT, draw_compute },
	[COLUMN_GOT] = { "GOT%", 4, 4, 90, false, ORDER_COMPUTE, draw_got },
	[COLUMN_ASKED] = { "ASKED", 5, 5, 60, false, ORDER_COUNT, draw_asked },
	[COLUMN_LIMIT] = { "LIMIT", 6, 6, 14, false, ORDER_COUNT, draw_limit },
	[COLUMN_GOT_60S] = { "60s%", 4, 4, 12, false, ORDER_COUNT, draw_got_60s },
	[COLUMN_MEMORY] = { "MEMORY", 6, 30, 28, true, ORDER_COUNT, draw_memory },
	[COLUMN_USED] = { "USED", 5, 5, 85, false, ORDER_MEMORY, draw_used },
	[COLUMN_QUOTA] = { "QUOTA", 5, 5, 55, false, ORDER_COUNT, draw_quota },
	[COLUMN_SWAPPED] = { "SWAPPED", 7, 7, 40, false, ORDER_COUNT, draw_swapped, can_swap },
	[COLUMN_HISTORY] = { "HISTORY", 7, 60, 20, true, ORDER_COUNT, draw_history },
	[COLUMN_LEASES] = { "LEASE", 5, 5, 25, false, ORDER_LEASES, draw_leases },
	[COLUMN_STEP_P50] = { "P50", 6, 6, 27, false, ORDER_COUNT, draw_step_p50, has_steps },
	[COLUMN_STEP_P99] = { "P99", 6, 6, 26, false, ORDER_COUNT, draw_step_p99, has_steps },
	[COLUMN_STEP_RATE] = { "STEP/s", 6, 6, 22, false, ORDER_COUNT, draw_step_rate, has_steps },
	[COLUMN_WAIT] = { "WAIT", 4, 5, 50, false, ORDER_WAIT, draw_wait },
	[COLUMN_REFUSED] = { "REFUSED", 7, 7, 13, false, ORDER_COUNT, draw_refused },
	[COLUMN_PRIORITY] = { "PRI", 4, 4, 15, false, ORDER_COUNT, draw_priority, has_priority },
	[COLUMN_VIOLATIONS] = { "VIOLATION", 9, 11, 45, true, ORDER_COUNT, draw_violations,
				has_violations },
	[COLUMN_CONTAINER] = { "CONTAINER", 12, 30, 10, true, ORDER_COUNT, draw_container,
			       has_container },
};

static bool is_needed(const struct snapshot *snapshot, const struct rows *rows,
		      const struct column_row *row)
{
	if (!row->is_needed)
		return true;
	for (size_t i = 0; i < rows->count; i++) {
		const struct top_share *share = &snapshot->shares[rows->share[i]];

		if (row->is_needed(&snapshot->tenants[share->tenant], share))
			return true;
	}
	return false;
}

static int total(const struct columns *columns)
{
	int sum = -GAP;

	for (int c = 0; c < COLUMN_COUNT; c++)
		sum += columns->width[c] ? columns->width[c] + GAP : 0;
	return sum;
}

static void narrow(struct columns *columns)
{
	int lowest = COLUMN_TENANT;

	for (int c = 0; c < COLUMN_COUNT; c++)
		if (columns->width[c] && rows_of[c].rank < rows_of[lowest].rank)
			lowest = c;
	if (rows_of[lowest].rank >= RANK_FAIR && columns->width[COLUMN_TENANT] > NAME_LEAST)
		columns->width[COLUMN_TENANT]--;
	else
		columns->width[lowest] = 0;
}

static int longest_name(const struct snapshot *snapshot, const struct rows *rows)
{
	int most = NAME_LEAST;

	for (size_t i = 0; i < rows->count; i++) {
		const struct top_share *share = &snapshot->shares[rows->share[i]];
		int columns = utf8_columns(snapshot->tenants[share->tenant].name);

		most = columns > most ? columns : most;
	}
	return most < NAME_MOST ? most : NAME_MOST;
}

/* Gives spare width to the columns that may grow, one character at a time in turn. */
static void grow(struct columns *columns, int over)
{
	bool is_given = true;

	while (over > 0 && is_given) {
		is_given = false;
		for (int c = 0; c < COLUMN_COUNT && over > 0; c++)
			if (columns->width[c] && columns->width[c] < rows_of[c].most) {
				columns->width[c]++;
				over--;
				is_given = true;
			}
	}
}

void columns_fit(const struct snapshot *snapshot, const struct rows *rows, int width,
		 struct columns *ret_columns)
{
	struct columns columns = { 0 };
	int name = longest_name(snapshot, rows), over;

	for (int c = 0; c < COLUMN_COUNT; c++)
		columns.width[c] = is_needed(snapshot, rows, &rows_of[c]) ? rows_of[c].least : 0;
	columns.width[COLUMN_TENANT] = name < NAME_FAIR ? name : NAME_FAIR;
	while (total(&columns) > width && total(&columns) > NAME_LEAST)
		narrow(&columns);
	/* Half of the spare width may go to names that were cut; the rest goes to bars and histories. */
	over = (width - total(&columns)) / 2;
	name -= columns.width[COLUMN_TENANT];
	if (over > 0 && name > 0)
		columns.width[COLUMN_TENANT] += name < over ? name : over;
	grow(&columns, width - total(&columns));
	*ret_columns = columns;
}

void columns_draw_titles(struct cells *cells, int line, const struct columns *columns,
			 enum order_key sort)
{
	int column = 0;

	for (int c = 0; c < COLUMN_COUNT; c++) {
		const struct column_row *row = &rows_of[c];
		enum style style = row->key == sort ? STYLE_WARNING : STYLE_TITLE;
		int width = columns->width[c];

		if (!width)
			continue;
		if (row->is_text)
			cells_put(cells, line, column, width, style, row->title);
		else
			cells_put_right(cells, line, column, width, style, row->title);
		column += width + GAP;
	}
}

void columns_draw_share(struct cells *cells, int line, const struct columns *columns,
			const struct snapshot *snapshot, const struct history *history, size_t share)
{
	struct subject of = { .share = &snapshot->shares[share],
			      .tenant = &snapshot->tenants[snapshot->shares[share].tenant],
			      .rates = history_share_rates(history, share),
			      .series = history_share(history, share) };
	struct place at = { .cells = cells, .line = line };

	for (int c = 0; c < COLUMN_COUNT; c++) {
		at.width = columns->width[c];
		if (!at.width)
			continue;
		rows_of[c].draw(&of, &at);
		at.column += at.width + GAP;
	}
}
