#include "cli/top/sort_shares.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct order_row order_rows[ORDER_COUNT] = {
	[ORDER_NAME] = { "name", 'N', "by name" },
	[ORDER_CARD] = { "gpu", 'G', "by GPU" },
	[ORDER_STATE] = { "state", 'T', "by state" },
	[ORDER_COMPUTE] = { "compute", 'C', "by GPU time got" },
	[ORDER_MEMORY] = { "memory", 'M', "by memory used" },
	[ORDER_LEASES] = { "leases", 'L', "by lease hand-overs a second" },
	[ORDER_WAIT] = { "wait", 'W', "by time waited" },
};

enum order_key order_find(const char *name)
{
	enum order_key key = 0;

	while (key < ORDER_COUNT && strcmp(order_rows[key].name, name) != 0)
		key++;
	return key;
}

struct context {
	const struct snapshot *snapshot;
	const struct history *history;
	enum order_key key;
	bool is_reversed;
};

/* Queued tenants come above tenants whose threads wait for GPU time. */
static double wait_of(const struct context *context, size_t share)
{
	const struct top_tenant *tenant =
		&context->snapshot->tenants[context->snapshot->shares[share].tenant];

	return tenant->is_queued ? 1e9 + tenant->queued_s
				 : history_share_rates(context->history, share)->waiting;
}

static double value_of(const struct context *context, size_t i)
{
	const struct top_share *share = &context->snapshot->shares[i];

	switch (context->key) {
	case ORDER_CARD: return -share->card;
	case ORDER_COMPUTE: return share->got_1s_pct;
	case ORDER_MEMORY: return (double)share->used_bytes;
	case ORDER_LEASES: return history_share_rates(context->history, i)->leases_per_s;
	case ORDER_WAIT: return wait_of(context, i);
	default: return 0;
	}
}

static int compare(const void *left, const void *right, void *data)
{
	const struct context *context = data;
	size_t i = *(const size_t *)left, j = *(const size_t *)right;
	const struct top_share *a = &context->snapshot->shares[i];
	const struct top_share *b = &context->snapshot->shares[j];
	const struct top_tenant *tenant_a = &context->snapshot->tenants[a->tenant];
	const struct top_tenant *tenant_b = &context->snapshot->tenants[b->tenant];
	double difference = value_of(context, i) - value_of(context, j);
	int r = difference > 0 ? -1 : difference < 0;

	if (context->key == ORDER_STATE)
		r = strcmp(tenant_a->state, tenant_b->state);
	if (r == 0)
		r = strcmp(tenant_a->name, tenant_b->name);
	if (r == 0)
		r = (a->card > b->card) - (a->card < b->card);
	if (r == 0)
		r = (i > j) - (i < j);
	return context->is_reversed ? -r : r;
}

static bool passes(const struct snapshot *snapshot, const struct top_share *share,
		   const char *filter)
{
	const struct top_tenant *tenant = &snapshot->tenants[share->tenant];
	char card[16];

	snprintf(card, sizeof(card), "gpu%d", share->card);
	return !*filter || strcasestr(tenant->name, filter) || strcasestr(tenant->state, filter) ||
	       strcasestr(tenant->container, filter) || strcasecmp(card, filter) == 0;
}

int order_make(const struct snapshot *snapshot, const struct history *history, enum order_key key,
	       bool is_reversed, const char *filter, struct rows *ret_rows)
{
	struct rows rows = { .share = calloc(snapshot->share_count + 1, sizeof(*rows.share)) };
	struct context context = { snapshot, history, key, is_reversed };

	if (!rows.share)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->share_count; i++)
		if (passes(snapshot, &snapshot->shares[i], filter))
			rows.share[rows.count++] = i;
	qsort_r(rows.share, rows.count, sizeof(*rows.share), compare, &context);
	*ret_rows = rows;
	return 0;
}

void order_free(struct rows *rows)
{
	free(rows->share);
	*rows = (struct rows){ 0 };
}

size_t order_position(const struct rows *rows, const struct snapshot *snapshot, const char *id,
		      int card)
{
	size_t i = 0;

	for (; i < rows->count; i++) {
		const struct top_share *share = &snapshot->shares[rows->share[i]];

		if (share->card == card && strcmp(snapshot->tenants[share->tenant].id, id) == 0)
			break;
	}
	return i;
}
