#include "library/memory/exports.h"

#include <string.h>

#include "library/state/process_state.h"

uint64_t exports_key(const void *bytes, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ULL;
	return hash ? hash : 1;
}

uint64_t exports_fabric_key(const void *handle)
{
	return exports_key(handle, EXPORTS_FABRIC_SIZE) >> 3 | 1;
}

uint64_t exports_owner(const struct region_report *report, const struct region_slot *slot)
{
	return (uint64_t)atomic_load(&slot->generation) << 32 | (uint32_t)(slot - report->slot + 1);
}

bool exports_is_alive(const struct region_report *report, uint64_t owner)
{
	uint32_t index = (uint32_t)owner - 1;

	return owner && index < REGION_MAX_SLOTS &&
	       atomic_load(&report->slot[index].state) == SLOT_LIVE &&
	       atomic_load(&report->slot[index].generation) == owner >> 32;
}

/* Entries are never emptied, so an unused entry ends the search. */
static struct region_export *find(struct region_report *report, uint64_t key)
{
	for (uint32_t i = 0; i < REGION_MAX_EXPORTS; i++) {
		struct region_export *e = &report->export[(key + i) % REGION_MAX_EXPORTS];
		uint64_t at = atomic_load(&e->key);
		if (at == key)
			return e;
		if (!at)
			return NULL;
	}
	return NULL;
}

/* Takes an entry whose owner is gone. Read the key again afterwards: another process may just have changed it. */
static bool claim_entry(struct region_report *report, struct region_export *e, uint64_t owner)
{
	uint64_t old = atomic_load(&e->owner);

	return !exports_is_alive(report, old) &&
	       atomic_compare_exchange_strong(&e->owner, &old, owner);
}

/* Stores a key in an entry whose owner is gone, or not at all if every entry has a live owner. */
static void insert(struct region_report *report, uint64_t key, uint64_t owner)
{
	for (uint32_t i = 0; i < REGION_MAX_EXPORTS; i++) {
		struct region_export *e = &report->export[(key + i) % REGION_MAX_EXPORTS];
		if (claim_entry(report, e, owner)) {
			atomic_store(&e->key, key);
			return;
		}
	}
}

static bool claim(struct region_report *report, uint64_t owner, uint64_t key)
{
	struct region_export *e = find(report, key);

	if (e && !claim_entry(report, e, owner))
		return false;
	if (e && atomic_load(&e->key) == key)
		return true;
	if (e)
		atomic_store(&e->owner, 0); /* another process changed the key */
	insert(report, key, owner);
	return true;
}

bool exports_claim(uint64_t key)
{
	struct region_report *report = atomic_load(&process_state.report);

	return claim(report, exports_owner(report, atomic_load(&process_state.slot)), key);
}

void exports_release(uint64_t key)
{
	struct region_report *report = atomic_load(&process_state.report);
	struct region_export *e = find(report, key);
	uint64_t own = exports_owner(report, atomic_load(&process_state.slot));

	if (e)
		atomic_compare_exchange_strong(&e->owner, &own, 0);
}

void exports_republish(struct region_report *report, const struct region_slot *slot, uint64_t key)
{
	claim(report, exports_owner(report, slot), key);
}
