/* What `allot top` makes of a daemon's reply: whatever it is, what it draws stays inside of the screen. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "cli/top/layout.h"

FUZZ_UNTRACED static void check(const struct cells *cells)
{
	bool is_good = true;

	for (int i = 0; i < cells->columns * cells->lines; i++)
		is_good &= cells->cell[i].style < STYLE_COUNT && cells->cell[i].c <= 0x10ffff;
	FUZZ_CHECK(is_good);
}

static void draw(const struct snapshot *snapshot, const struct history *history, int columns,
		 int lines)
{
	struct view view = { .details = VIEW_DETAILS_ON };
	struct rows rows;
	struct cells cells;
	struct layout_result result;

	if (order_make(snapshot, history, ORDER_STATE, false, "", &rows) < 0 ||
	    cells_make(columns, lines, false, &cells) < 0)
		abort();
	struct layout layout = { .snapshot = snapshot,
				 .history = history,
				 .rows = &rows,
				 .view = &view,
				 .source = "a machine",
				 .clock = "12:34:56" };
	layout_draw(&layout, &cells, &result);
	check(&cells);
	FUZZ_CHECK(result.first <= rows.count);
	cells_free(&cells);
	order_free(&rows);
}

/* Of each input one, by its length, and none of its looks is as the one before. */
static const struct {
	int columns, lines;
} sizes[] = { { 80, 24 }, { 31, 12 }, { 150, 40 } };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = fuzz_text(data, size);
	cleanup_history struct history *history = NULL;

	if (history_make(&history) < 0)
		abort();
	for (uint64_t sample = 1; sample <= 2; sample++) {
		cleanup_snapshot struct snapshot *snapshot = snapshot_make(text, NULL,
									   sample * 1000000000);

		if (!snapshot || history_update(history, snapshot) < 0)
			abort();
		for (size_t i = 0; i < snapshot->share_count; i++)
			FUZZ_CHECK(snapshot->shares[i].tenant < snapshot->tenant_count);
		size_t of = (size + sample) % (sizeof(sizes) / sizeof(sizes[0]));
		draw(snapshot, history, sizes[of].columns, sizes[of].lines);
	}
	return 0;
}
