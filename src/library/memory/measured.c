#include "library/memory/measured.h"

#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/memory/ledger.h"

static bool read_free_bytes(size_t *ret_free)
{
	size_t total;

	return real.cuMemGetInfo_v2 && real.cuMemGetInfo_v2(ret_free, &total) == CUDA_SUCCESS;
}

void measured_begin(struct measured *m, int index)
{
	m->grown = m->charged = 0;
	/* Whether cuMemGetInfo breaks a capture depends on the driver, so measure nothing during one. */
	if (atomic_load(&process_state.captures))
		index = -1;
	m->index = index >= 0 && read_free_bytes(&m->free_before) ? index : -1;
	if (m->index >= 0)
		m->used_before = ledger_used(index);
}

/* By how much the GPU's free memory shrank, less what other calls of the tenant were charged meanwhile. */
static uint64_t growth(const struct measured *m)
{
	uint64_t used = ledger_used(m->index), named = used - m->used_before;
	size_t now_free;

	if (!read_free_bytes(&now_free) || now_free >= m->free_before)
		return 0;
	uint64_t grown = m->free_before - now_free;
	if (used <= m->used_before)
		return grown;
	return grown > named ? grown - named : 0;
}

static bool charge(struct measured *m, uint64_t bytes)
{
	struct holding h = { .device = m->index, .bytes = bytes };

	if (!bytes)
		return true;
	if (!charge_begin(&h))
		return false;
	ledger_make_fresh(m->index, bytes);
	m->charged = bytes;
	return true;
}

bool measured_charge(struct measured *m)
{
	if (m->index < 0)
		return true;
	m->grown = growth(m);
	return charge(m, m->grown);
}

bool measured_charge_retry(struct measured *m)
{
	struct measured back = *m;

	/* Memory that is missing even after the undo belongs to other tenants. */
	uint64_t left = growth(&back);
	uint64_t made = m->grown > left ? m->grown - left : 0;
	return made < m->grown && charge(m, made);
}

void measured_refund(const struct measured *m)
{
	if (m->charged)
		ledger_release_unnamed(m->index, m->charged);
}

void measured_charge_always(struct measured *m)
{
	if (m->index >= 0)
		ledger_add_fresh(m->index, growth(m));
}

void measured_release(struct measured *m)
{
	size_t now_free;

	if (m->index >= 0 && read_free_bytes(&now_free) && now_free > m->free_before)
		ledger_release_unnamed(m->index, now_free - m->free_before);
}
