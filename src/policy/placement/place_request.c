#include "policy/placement/place_request.h"

#include <stdio.h>
#include <string.h>

bool place_needs_whole_card(const struct place_request *request)
{
	return request->cores_mpct >= PLACE_CORES_WHOLE_MPCT;
}

struct place_need place_need(const struct place_card *card, const struct place_request *request)
{
	struct place_need need = { .memory_bytes = request->memory_bytes,
				   .cores_mpct = request->cores_mpct };
	uint64_t most_bytes = card->memory_reserved_bytes < card->memory_total_bytes
				      ? card->memory_total_bytes - card->memory_reserved_bytes
				      : 0;

	/* Divide first, because bytes times percent may overflow. */
	uint64_t part_bytes = card->memory_total_bytes / 100 * request->memory_pct +
			      card->memory_total_bytes % 100 * request->memory_pct / 100;
	if (request->memory == PLACE_MEMORY_PCT && part_bytes > need.memory_bytes)
		need.memory_bytes = part_bytes;
	if (request->memory == PLACE_MEMORY_ALL)
		need.memory_bytes = most_bytes;
	/*
	 * A request for an unshared GPU gets all time that is not reserved. If it asks for a percentage of the memory, it gets
	 * at most the memory that is not reserved.
	 */
	if (place_needs_whole_card(request)) {
		need.cores_mpct = card->cores_reserved_mpct < card->cores_total_mpct
					  ? card->cores_total_mpct - card->cores_reserved_mpct
					  : 0;
		if (need.memory_bytes > most_bytes && request->memory == PLACE_MEMORY_PCT)
			need.memory_bytes = most_bytes;
	}
	return need;
}

static const char *const reason_names[PLACE_REASON_COUNT] = {
	[PLACE_FITS] = "",
	[PLACE_CARD_NOT_SERVED] = "CardNotServed",
	[PLACE_CARD_USE_UNKNOWN] = "CardUseUnknown",
	[PLACE_CARD_NOT_HEALTH] = "CardNotHealth",
	[PLACE_CARD_CORDONED] = "CardCordoned",
	[PLACE_CARD_TYPE_MISMATCH] = "CardTypeMismatch",
	[PLACE_NUMA_NOT_FIT] = "NumaNotFit",
	[PLACE_CARD_UUID_MISMATCH] = "CardUuidMismatch",
	[PLACE_CARD_TIME_SLICING_EXHAUSTED] = "CardTimeSlicingExhausted",
	[PLACE_QUOTA_NOT_FIT] = "ResourceQuotaNotFit",
	[PLACE_CARD_INSUFFICIENT_MEMORY] = "CardInsufficientMemory",
	[PLACE_CARD_INSUFFICIENT_CORE] = "CardInsufficientCore",
	[PLACE_EXCLUSIVE_CONFLICT] = "ExclusiveDeviceAllocateConflict",
	[PLACE_COMPUTE_UNITS_EXHAUSTED] = "CardComputeUnitsExhausted",
	[PLACE_ALLOCATED_INSUFFICIENT] = "AllocatedCardsInsufficientRequest",
};

const char *place_reason_name(enum place_reason reason)
{
	return reason_names[reason];
}

static bool has_uuid(struct place_words words, const char *uuid)
{
	for (size_t i = 0; i < words.count; i++)
		if (!strcmp(words.word[i], uuid))
			return true;
	return false;
}

static bool has_type(struct place_words words, const char *type)
{
	for (size_t i = 0; i < words.count; i++)
		if (strcasestr(type, words.word[i]))
			return true;
	return false;
}

bool place_is_type(struct place_words use, struct place_words nouse, const char *type)
{
	return (!use.count || has_type(use, type)) && !has_type(nouse, type);
}

enum place_reason place_check_card(const struct place_card *card,
				   const struct place_request *request)
{
	struct place_need need = place_need(card, request);
	uint32_t cores_left = place_cores_left(card);

	if (card->is_sick)
		return PLACE_CARD_NOT_HEALTH;
	if (card->is_cordoned)
		return PLACE_CARD_CORDONED;
	if (((request->use_type.count || request->nouse_type.count) &&
	     !place_is_type(request->use_type, request->nouse_type, card->type)) ||
	    (card->is_instance && request->count > 1))
		return PLACE_CARD_TYPE_MISMATCH;
	if ((request->use_uuid.count && !has_uuid(request->use_uuid, card->uuid)) ||
	    has_uuid(request->nouse_uuid, card->uuid))
		return PLACE_CARD_UUID_MISMATCH;
	if (card->slots_used >= card->slots_total)
		return PLACE_CARD_TIME_SLICING_EXHAUSTED;
	if (need.memory_bytes > place_memory_left(card))
		return PLACE_CARD_INSUFFICIENT_MEMORY;
	if (need.cores_mpct > cores_left)
		return PLACE_CARD_INSUFFICIENT_CORE;
	if (place_needs_whole_card(request) && card->slots_used > 0)
		return PLACE_EXCLUSIVE_CONFLICT;
	if (request->cores_mpct == 0 && cores_left == 0)
		return PLACE_COMPUTE_UNITS_EXHAUSTED;
	return PLACE_FITS;
}

int place_reasons_text(const enum place_reason *reason, unsigned card_count,
		       const struct place_request *request, char *text, size_t size)
{
	int length = 0;

	if (size)
		text[0] = '\0';
	if (request->count > card_count)
		return snprintf(text, size, "NodeInsufficientDevice");
	for (unsigned r = PLACE_FITS + 1; r < PLACE_REASON_COUNT; r++) {
		size_t at = (size_t)length < size ? (size_t)length : size;
		unsigned cards = 0;
		for (unsigned i = 0; i < card_count; i++)
			cards += reason[i] == r;
		if (cards)
			length += snprintf(text + at, size - at, "%s%u/%u %s", length ? ", " : "",
					   cards, card_count, reason_names[r]);
	}
	return length;
}
