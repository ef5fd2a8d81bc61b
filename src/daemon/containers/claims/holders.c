#include "daemon/containers/claims/holders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct holders_card *find(const struct holders *holders, const char *uuid)
{
	struct holders_card *card = holders->first;
	while (card && strcmp(card->uuid, uuid) != 0)
		card = card->next;
	return card;
}

int holders_reserve(struct holders *holders, const char *uuid)
{
	if (find(holders, uuid))
		return 0;
	struct holders_card *card = calloc(1, sizeof(*card));
	if (!card)
		return -ENOMEM;
	snprintf(card->uuid, sizeof(card->uuid), "%s", uuid);
	card->next = holders->first;
	holders->first = card;
	return 0;
}

int holders_add(struct holders *holders, const char *uuid, const struct slots *slots,
		struct claim *claim)
{
	if (!slots_count(slots))
		return 0;
	int r = holders_reserve(holders, uuid);
	if (r < 0)
		return r;
	struct holders_card *card = find(holders, uuid);
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		if (slots_has(slots, i) && !card->holder[i])
			card->holder[i] = claim;
	return 0;
}

void holders_remove(struct holders *holders, const char *uuid, const struct slots *slots,
		    const struct claim *claim)
{
	struct holders_card *card = find(holders, uuid);
	for (unsigned i = 0; card && i < SLOTS_MAX; i++)
		if (slots_has(slots, i) && card->holder[i] == claim)
			card->holder[i] = NULL;
}

void holders_clear(struct holders *holders)
{
	struct holders_card *next;
	for (struct holders_card *card = holders->first; card; card = next) {
		next = card->next;
		free(card);
	}
	holders->first = NULL;
}

struct claim *holders_first(const struct holders *holders, const char *uuid,
			    const struct slots *slots, unsigned *ret_slot)
{
	const struct holders_card *card = find(holders, uuid);
	for (unsigned i = 0; card && i < SLOTS_MAX; i++)
		if (slots_has(slots, i) && card->holder[i]) {
			*ret_slot = i;
			return card->holder[i];
		}
	return NULL;
}
