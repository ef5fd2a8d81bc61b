#include "scheduler/fit/fit.h"

bool fit_is_resolvable(const struct inventory *inventory, const struct fit_reasons *reasons)
{
	unsigned curable = 0;
	for (unsigned i = 0; i < inventory->count; i++)
		switch (reasons->reason[i]) {
		case PLACE_CARD_NOT_SERVED:
		case PLACE_CARD_USE_UNKNOWN:
		case PLACE_CARD_NOT_HEALTH:
		case PLACE_CARD_CORDONED:
		case PLACE_CARD_TYPE_MISMATCH:
		case PLACE_CARD_UUID_MISMATCH: break;
		case PLACE_QUOTA_NOT_FIT: curable += !reasons->is_beyond_quota; break;
		default: curable++;
		}
	return curable >= reasons->part->place.count;
}

int fit_reasons_text(const struct inventory *inventory, const struct fit_reasons *reasons,
		     char *text, size_t size)
{
	return place_reasons_text(reasons->reason, inventory->count, &reasons->part->place, text,
				  size);
}
