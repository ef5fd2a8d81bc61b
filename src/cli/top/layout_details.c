#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/format.h"
#include "cli/top/bars.h"
#include "cli/top/layout.h"

#define LABEL 10

static void put(struct cells *cells, int line, const char *label, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void put(struct cells *cells, int line, const char *label, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cells_put(cells, line, 0, LABEL, STYLE_TITLE, label);
	cells_put(cells, line, LABEL, cells->columns - LABEL, STYLE_PLAIN, text);
}

static void draw_rule(struct cells *cells, int line, const struct top_tenant *tenant, int card)
{
	char text[SNAPSHOT_NAME_MAX + 24];

	snprintf(text, sizeof(text), " %s on GPU %d ", tenant->name, card);
	for (int i = 0; i < cells->columns; i++)
		cells_put_char(cells, line, i, STYLE_DIM, cells->is_ascii ? '-' : 0x2500);
	cells_put(cells, line, 2, cells->columns - 2, STYLE_STRONG, text);
}

static void draw_compute(struct cells *cells, int line, const struct top_share *share)
{
	char asked[64] = "no guarantee requested", used[FORMAT_MAX], over[FORMAT_MAX], lent[48] = "";

	if (share->has_asked && share->guaranteed_pct < share->requested_pct)
		snprintf(asked, sizeof(asked), "%.4g %% asked, scaled down to %.4g %%",
			 share->requested_pct, share->guaranteed_pct);
	else if (share->has_asked)
		snprintf(asked, sizeof(asked), "%.4g %% asked", share->requested_pct);
	if (share->lent_pct > 0)
		snprintf(lent, sizeof(lent), " and %.0f %% lent", share->lent_pct);
	format_seconds(share->used_s, used);
	format_seconds(share->overrun_s, over);
	put(cells, line, "compute",
	    "%s, limit %.4g %%%s; got %.1f %% in 1 s, %.1f %% in 60 s; %s in all, %s of it after leases had ended",
	    asked, share->limit_pct, lent, share->got_1s_pct, share->got_60s_pct, used, over);
}

static void draw_memory(struct cells *cells, int line, const struct top_share *share)
{
	char used[FORMAT_MAX], quota[FORMAT_MAX] = "what the GPU has";

	format_bytes(share->used_bytes, used);
	if (share->has_quota)
		format_bytes(share->quota_bytes, quota);
	put(cells, line, "memory", "%s of %s; %llu allocations refused", used, quota,
	    (unsigned long long)share->denied);
}

static void draw_swap(struct cells *cells, int line, const struct top_tenant *tenant)
{
	const struct top_swap *swap = &tenant->swap;
	char bytes[FORMAT_MAX], moved[FORMAT_MAX];

	if (!swap->is_set) {
		put(cells, line, "swap", "no memory of it can be moved off its GPUs; --on-full: %s",
		    *tenant->on_full ? tenant->on_full : "?");
		return;
	}
	format_bytes(swap->swapped_bytes, bytes);
	format_seconds(swap->moved_s, moved);
	put(cells, line, "swap",
	    "%s, %s: %s not on the GPU; the last move took %s; %llu moves failed", swap->kind,
	    swap->state, bytes, moved, (unsigned long long)swap->failed);
}

static void draw_leases(struct cells *cells, int line, const struct top_tenant *tenant,
			const struct top_share *share, const struct history_rates *rates)
{
	char waited[FORMAT_MAX], queued[FORMAT_MAX + 64] = "";

	format_seconds(share->waited_s, waited);
	if (tenant->is_queued) {
		char since[FORMAT_MAX];

		format_seconds(tenant->queued_s, since);
		snprintf(queued, sizeof(queued),
			 "; waiting for memory for %s, place %llu in the queue", since,
			 (unsigned long long)tenant->place);
	}
	put(cells, line, "leases",
	    "%llu, %.1f a second, %llu ended late; waited %s in all; %.2f threads wait now%s",
	    (unsigned long long)share->leases, rates->leases_per_s,
	    (unsigned long long)share->expired, waited, rates->waiting, queued);
}

static void draw_steps(struct cells *cells, int line, const struct top_share *share)
{
	char p50[FORMAT_MAX], p99[FORMAT_MAX], rate[FORMAT_MAX];

	if (!share->has_steps) {
		put(cells, line, "steps", "none recently");
		return;
	}
	format_ms(share->step_p50_ms, p50);
	format_ms(share->step_p99_ms, p99);
	format_rate(share->steps_per_s, rate);
	put(cells, line, "steps", "%s a second, half of them take up to %s, 99 %% up to %s", rate,
	    p50, p99);
}

static void draw_more(struct cells *cells, int line, const struct top_tenant *tenant)
{
	char text[128] = "none";

	if (tenant->violations)
		snprintf(text, sizeof(text), "%llu, the last one %s",
			 (unsigned long long)tenant->violations,
			 *tenant->offence ? tenant->offence : "gone");
	put(cells, line, "more", "priority %lld, %zu process%s, violations: %s%s%s",
	    (long long)tenant->priority, tenant->processes, tenant->processes == 1 ? "" : "es",
	    text, *tenant->container ? ", container " : "", tenant->container);
}

static void draw_series(struct cells *cells, int line, const char *label, const float *values,
			size_t count)
{
	cells_put(cells, line, 0, LABEL, STYLE_TITLE, label);
	spark_draw(cells, line, LABEL, cells->columns - LABEL, 1, values, count);
}

void layout_draw_details(const struct layout *layout, struct cells *cells, int line, size_t i)
{
	const struct top_share *share = &layout->snapshot->shares[i];
	const struct top_tenant *tenant = &layout->snapshot->tenants[share->tenant];
	const struct history_rates *rates = history_share_rates(layout->history, i);
	const struct history_series *series = history_share(layout->history, i);

	draw_rule(cells, line, tenant, share->card);
	draw_compute(cells, line + 1, share);
	draw_series(cells, line + 2, "", series->got, series->count);
	draw_memory(cells, line + 3, share);
	draw_series(cells, line + 4, "", series->memory, series->count);
	draw_swap(cells, line + 5, tenant);
	draw_leases(cells, line + 6, tenant, share, rates);
	draw_steps(cells, line + 7, share);
	draw_more(cells, line + 8, tenant);
}
