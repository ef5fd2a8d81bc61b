#include "daemon/memory/swap/swap_orders.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/memory/swap/arena.h"

#define MIB (UINT64_C(1) << 20)
#define ARENA_UNIT (2 * MIB)
#define MOVED_MAX_NS (UINT64_C(3600) * 1000000000)

#define load(field) atomic_load_explicit(&(field), memory_order_relaxed)

uint64_t swap_budget_bytes(const struct node *node)
{
	return node->config.swap_arena_bytes ? node->config.swap_arena_bytes
					     : arena_default_budget();
}

/* Returns the size of all arenas, also of the previous daemon's. *ret_pending: how much this daemon has still to allocate. */
static uint64_t reserved_arenas(const struct node *node, uint64_t *ret_pending)
{
	const struct tenant *t;
	uint64_t sum = 0;
	*ret_pending = 0;
	TAILQ_FOREACH(t, &node->tenants, link) {
		sum += t->terms.swap_arena_bytes;
		if (t->arena)
			*ret_pending += arena_pending_bytes(t->arena);
	}
	return sum;
}

uint64_t swap_reserved_bytes(const struct node *node)
{
	uint64_t pending;
	return reserved_arenas(node, &pending);
}

static int check_arena(struct node *node, uint64_t bytes, struct error *err)
{
	uint64_t pending, reserved = reserved_arenas(node, &pending),
			  budget = swap_budget_bytes(node);
	uint64_t left = reserved < budget ? (budget - reserved) / ARENA_UNIT * ARENA_UNIT : 0;
	if (bytes > left) {
		char smaller[64] = "";
		if (left)
			snprintf(smaller, sizeof(smaller),
				 "use --swap-arena %" PRIu64 "MiB or less, or ", left / MIB);
		return error_set(
			err, ENOSPC,
			"--on-full swap needs %s of host memory, and %s of the %s for all tenants are "
			"left: %sraise swap_arena in allotd's settings",
			amount(bytes).text, amount(left).text, amount(budget).text, smaller);
	}
	int r = arena_check_memory(bytes, pending, err);
	return r < 0 ? error_add(err, r, "--on-full swap") : 0;
}

int swap_check_host_memory(struct node *node, uint64_t bytes, struct error *err)
{
	uint64_t pending;
	if (node->simulated)
		return 0;
	reserved_arenas(node, &pending);
	int r = arena_check_memory(bytes, pending, err);
	return r < 0 ? error_add(err, r, "moving memory off the GPU") : 0;
}

int swap_check_terms(struct node *node, struct tenant_terms *terms, struct error *err)
{
	uint64_t quotas = 0;
	if (terms->on_full != ON_FULL_SWAP) {
		if (terms->swap_arena_bytes)
			return error_set(err, EINVAL,
					 "swap_arena_bytes: possible only with on_full 'swap'");
		return 0;
	}
	for (unsigned i = 0; i < terms->device_count; i++) {
		if (!terms->device[i].promise.memory_given)
			return error_set(err, EINVAL,
					 "on_full: 'swap' needs a quota: memory_bytes is missing");
		quotas += terms->device[i].promise.quota_bytes;
	}
	if (!terms->swap_arena_bytes || terms->swap_arena_bytes > quotas)
		terms->swap_arena_bytes = quotas;
	terms->swap_arena_bytes = (terms->swap_arena_bytes + ARENA_UNIT - 1) / ARENA_UNIT *
				  ARENA_UNIT;
	return check_arena(node, terms->swap_arena_bytes, err);
}

static int swap_open(struct tenant *tenant, struct error *err)
{
	if (tenant->terms.on_full != ON_FULL_SWAP)
		return 0;
	return arena_new(tenant->terms.swap_arena_bytes, tenant->region.control,
			 tenant->node->config.is_arena_tenants, &tenant->arena, err);
}

int swap_tenant_added(struct tenant *tenant, bool is_new, struct error *err)
{
	const struct tenant_terms *terms = &tenant->terms;
	swap_set_order(tenant, !terms->swapped_out                     ? SWAP_ORDER_IN
			       : swap_way_of(terms) == SWAP_BY_LIBRARY ? SWAP_ORDER_OUT
								       : SWAP_ORDER_PARKED);
	return is_new ? swap_open(tenant, err) : 0;
}

void swap_close(struct tenant *tenant)
{
	tenant->arena = arena_free(tenant->arena);
}

static enum swap_order order_of(const struct tenant *tenant)
{
	return swap_order_of(load(tenant->region.control->swap));
}

static void send_order(struct tenant *tenant, enum swap_order order)
{
	_Atomic uint32_t *word = &tenant->region.control->swap;
	uint32_t sequence = load(*word) & ~SWAP_ORDER_MASK;
	atomic_store(word, (sequence + SWAP_SEQUENCE_STEP) | (uint32_t)order);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void swap_set_order(struct tenant *tenant, enum swap_order order)
{
	if (order_of(tenant) != order)
		send_order(tenant, order);
}

void swap_repeat_order(struct tenant *tenant)
{
	send_order(tenant, order_of(tenant));
}

static uint64_t bounded(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

static void add(uint64_t *sum, uint64_t value, uint64_t most)
{
	*sum = bounded(*sum + bounded(value, most), most);
}

static void add_device(struct swap_device_figures *f, const struct region_slot *slot,
		       unsigned device, uint64_t most)
{
	const struct region_slot_swap *s = &slot->swap[device];
	add(&f->wanted_bytes, load(s->wanted_bytes), most);
	if (load(slot->swap_state) == SWAP_NONE)
		return;
	add(&f->movable_bytes, load(s->movable_bytes), most);
	add(&f->out_bytes, load(s->out_bytes), most);
	add(&f->kept_bytes, load(s->kept_bytes), most);
	add(&f->context_bytes, load(slot->device[device].context_used_bytes), most);
}

static void add_process(struct swap_figures *f, const struct region_slot *slot, uint32_t word)
{
	uint64_t moved = bounded(load(slot->swap_moved_ns), MOVED_MAX_NS);
	switch (load(slot->swap_state)) {
	case SWAP_IN: f->in++; break;
	case SWAP_LEAVING:
	case SWAP_RETURNING:
		f->moving++;
		f->copied_bytes += (uint64_t)load(slot->swap_copied_mib) << 20;
		break;
	case SWAP_OUT: f->out++; break;
	case SWAP_SHORT:
		f->out++;
		f->is_short++;
		break;
	default: return; /* nothing to move, and reads no orders */
	}
	f->behind += load(slot->swap_word) != word;
	f->failed += load(slot->swap_failed);
	f->progress += load(slot->swap_progress_bytes);
	if (moved > f->moved_ns)
		f->moved_ns = moved;
}

struct swap_figures swap_figures(const struct tenant *tenant)
{
	struct swap_figures f = { 0 };
	uint32_t word = load(tenant->region.control->swap);
	for (unsigned i = 0; i < tenant->slot_limit; i++) {
		const struct region_slot *slot = &tenant->region.report->slot[i];
		if (!tenant->process[i])
			continue;
		add_process(&f, slot, word);
		for (unsigned k = 0; k < tenant->terms.device_count; k++)
			add_device(&f.device[k], slot, k,
				   tenant->terms.device[k].card->info.memory_bytes);
	}
	for (unsigned k = 0; k < tenant->terms.device_count; k++) {
		f.movable_bytes += f.device[k].movable_bytes;
		f.out_bytes += f.device[k].out_bytes;
	}
	return f;
}

static bool has_refused(const struct tenant *tenant, const struct swap_figures *f)
{
	return order_of(tenant) == SWAP_ORDER_OUT && f->in && !f->moving && !f->behind;
}

bool swap_has_refused(const struct tenant *tenant)
{
	struct swap_figures f = swap_figures(tenant);
	return has_refused(tenant, &f);
}

struct swap_progress swap_progress(struct tenant *tenant)
{
	struct swap_figures f = swap_figures(tenant);
	struct swap_progress p = { .total_bytes = f.movable_bytes };
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		uint64_t used = tenant_usage(tenant, i).used_bytes;
		uint64_t movable = f.device[i].movable_bytes;
		p.stays_bytes += used > movable ? used - movable : 0;
	}
	p.moved_bytes = bounded(f.copied_bytes + f.out_bytes, p.total_bytes);
	return p;
}

static enum checkpoint_place place_of(const struct tenant *tenant, const struct swap_figures *f)
{
	if (order_of(tenant) != SWAP_ORDER_OUT)
		return (f->out || f->moving) && !f->is_short ? PLACE_RETURNING : PLACE_IN;
	if (has_refused(tenant, f))
		return f->out ? PLACE_STUCK : PLACE_IN;
	if (f->in || f->moving)
		return PLACE_LEAVING;
	return f->out ? PLACE_OUT : PLACE_IN;
}

enum checkpoint_place swap_place(const struct tenant *tenant)
{
	if (tenant->terms.on_full != ON_FULL_SWAP)
		return PLACE_IN;
	struct swap_figures f = swap_figures(tenant);
	return place_of(tenant, &f);
}

const char *swap_text(unsigned state)
{
	return state == SWAP_TEXT_SHORT ? "short"
					: checkpoint_place_name((enum checkpoint_place)state);
}

const char *swap_state_text(const struct tenant *tenant)
{
	struct swap_figures f = swap_figures(tenant);
	if (tenant->terms.on_full != ON_FULL_SWAP || !(f.in + f.moving + f.out))
		return NULL;
	return swap_text(f.is_short ? SWAP_TEXT_SHORT : (unsigned)place_of(tenant, &f));
}
