#include "daemon/kubelet/devices/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Accepts numbers only as slice_format() writes them: no sign, no leading zero. */
static bool parse_number(const char *text, unsigned below, unsigned *ret)
{
	size_t length = strlen(text);
	if (!length || length > 4 || strspn(text, "0123456789") != length ||
	    (text[0] == '0' && length > 1))
		return false;
	*ret = (unsigned)strtoul(text, NULL, 10);
	return *ret < below;
}

/* *ret is the unit's index among the units of all cards. */
static int parse_unit(const struct units *units, const char *id, unsigned *ret, struct error *err)
{
	const struct slices *slices = units->slices;
	const char *dash = strrchr(id, '-');
	unsigned before = 0, number;
	for (unsigned i = 0; dash && i < slices->card_count; before += units->count[i++]) {
		size_t n = strlen(slices->uuid[i]);
		if (n != (size_t)(dash - id) || memcmp(slices->uuid[i], id, n) != 0)
			continue;
		if (!parse_number(dash + 1, units->count[i], &number))
			return error_set(
				err, EINVAL,
				"device '%.63s' is not one of allotd's: '%.20s' must be 0 to %u",
				id, dash + 1, units->count[i] - 1);
		*ret = before + number;
		return 0;
	}
	return error_set(
		err, EINVAL,
		"device '%.63s' is not one of allotd's: must be a GPU of this node and a number, "
		"such as %s-0",
		id, slices->card_count ? slices->uuid[0] : "GPU-<UUID>");
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
