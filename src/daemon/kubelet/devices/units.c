#include "daemon/kubelet/devices/units.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "kube/gpu_manager/vcuda.h"

unsigned units_of(uint64_t memory_bytes)
{
	uint64_t units = memory_bytes / VCUDA_UNIT_BYTES;
	return units < UNITS_MAX_PER_CARD ? (unsigned)units : UNITS_MAX_PER_CARD;
}

unsigned units_count(const struct units *units)
{
	unsigned count = 0;
	for (unsigned i = 0; i < units->slices->card_count; i++)
		count += units->count[i];
	return count;
}

/* *ret is the unit's index among the units of all cards. */
static int parse_unit(const struct units *units, const char *id, unsigned *ret, struct error *err)
{
	const char *text;
	unsigned card, number;
	int r = slices_find_card(units->slices, id, &card, &text, err);
	if (r < 0)
		return r;
	if (!slices_parse_number(text, units->count[card], &number))
		return error_set(err, EINVAL,
				 "device '%.63s' is not one of allotd's: '%.20s' must be 0 to %u",
				 id, text, units->count[card] - 1);
	for (unsigned i = 0; i < card; i++)
		number += units->count[i];
	*ret = number;
	return 0;
}

int units_check(const struct units *units, char *const *ids, size_t count, struct error *err)
{
	cleanup_free bool *is_named = calloc(units_count(units) + 1, sizeof(*is_named));
	if (!is_named)
		return error_set_errno(err, ENOMEM, "request");
	for (size_t i = 0; i < count; i++) {
		unsigned place = 0;
		int r = parse_unit(units, ids[i], &place, err);
		if (r < 0)
			return r;
		if (is_named[place])
			return error_set(err, EINVAL, "device '%.63s' is named twice", ids[i]);
		is_named[place] = true;
	}
	return 0;
}
