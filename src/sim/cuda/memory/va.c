/*
 * Device addresses: a reserved range of this process's address space, so no host address is ever a device address. `units` has,
 * for each 2 MiB of that range, the region there. Host memory backs managed memory, and other regions up to BACKED_MAX in all,
 * so that copies move real bytes.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/cuda/sim.h"

#define BACKED_MAX (64ull << 20)

static uint64_t range, units_n;
static struct sim_region **units;
static uint64_t cursor;
static struct sim_region *list;
static uint64_t backed_bytes, serials;

bool sim_va_init(void)
{
	uint64_t bytes = 2ull << 40;
	void *p = MAP_FAILED;

	if (units)
		return true;
	/* A limit of the address space (ulimit -v) may forbid the full size. */
	for (; p == MAP_FAILED && bytes >= 8ull << 30; bytes /= 2)
		p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	bytes *= 2;
	range = ((uint64_t)(uintptr_t)p + SIM_UNIT - 1) & ~(SIM_UNIT - 1);
	units_n = bytes / SIM_UNIT - 1;
	p = mmap(NULL, units_n * sizeof(*units), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	units = p;
	return true;
}

bool sim_va_is_device(uint64_t addr)
{
	return units && addr >= range && addr - range < units_n * SIM_UNIT;
}

struct sim_region *sim_va_list(void)
{
	return list;
}

/* Returns the first of n free units in a row at or after `from`, aligned to `align` units; units_n if there are none. */
static uint64_t find_free(uint64_t from, uint64_t n, uint64_t align)
{
	uint64_t at = from;

	while (at + n <= units_n) {
		uint64_t run = 0;
		uint64_t over = (range / SIM_UNIT + at) % align;

		if (over) {
			at += align - over;
			continue;
		}
		while (run < n && !units[at + run])
			run++;
		if (run == n)
			return at;
		at += run;
		at = (units[at]->base + units[at]->span - range) / SIM_UNIT;
	}
	return units_n;
}

struct sim_region *sim_va_new(enum sim_region_kind kind, uint64_t span, uint64_t alignment)
{
	uint64_t n = (span + SIM_UNIT - 1) / SIM_UNIT;
	uint64_t align = SIM_MAX(alignment, SIM_UNIT) / SIM_UNIT;
	struct sim_region *region = calloc(1, sizeof(*region));

	if (!region || !n || n > units_n) {
		free(region);
		return NULL;
	}
	/* Continue after the last allocation, so that a freed address stays unused for long. */
	uint64_t at = find_free(cursor, n, align);
	if (at == units_n)
		at = find_free(0, n, align);
	if (at == units_n) {
		free(region);
		return NULL;
	}
	region->kind = kind;
	region->base = range + at * SIM_UNIT;
	region->span = n * SIM_UNIT;
	region->serial = ++serials;
	for (uint64_t i = 0; i < n; i++)
		units[at + i] = region;
	cursor = at + n;
	region->next = list;
	if (list)
		list->prev = region;
	list = region;
	return region;
}

void sim_va_free(struct sim_region *region)
{
	uint64_t at = (region->base - range) / SIM_UNIT;

	if (region->backed) {
		/* A new mapping in the same place frees the pages and removes the access in one call. */
		mmap((void *)(uintptr_t)region->base, region->span, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		if (!region->managed)
			backed_bytes -= region->span;
	}
	for (uint64_t i = 0; i < region->span / SIM_UNIT; i++)
		units[at + i] = NULL;
	if (region->prev)
		region->prev->next = region->next;
	else
		list = region->next;
	if (region->next)
		region->next->prev = region->prev;
	free(region->detail);
	free(region);
}

struct sim_region *sim_va_find(uint64_t addr)
{
	return sim_va_is_device(addr) ? units[(addr - range) / SIM_UNIT] : NULL;
}

void sim_va_add_backing(struct sim_region *region, bool must)
{
	if (!must && backed_bytes + region->span > BACKED_MAX)
		return;
	if (mprotect((void *)(uintptr_t)region->base, region->span, PROT_READ | PROT_WRITE) < 0)
		return;
	region->backed = true;
	if (!region->managed)
		backed_bytes += region->span;
}

bool sim_va_has_bytes(uint64_t addr, uint64_t n)
{
	if (!sim_va_is_device(addr))
		return true;
	struct sim_region *region = sim_va_find(addr);
	if (region && region->kind == REGION_RESERVED)
		return sim_vmm_has_bytes(addr, n);
	return region && region->backed && sim_is_within(addr - region->base, n, region->span);
}
