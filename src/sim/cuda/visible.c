/* Which devices a program sees, and in which order: by CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER and MIG. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/cuda/sim.h"

struct ordered_card {
	uint32_t card;
	struct sim_card_info info;
};

/* All devices of the server: cards_n GPUs in CUDA's order, then MIG instances in the server's order. */
struct listed {
	int cards_n, all_n;
	struct ordered_card item[SIM_MAX_CARDS];
};

static bool is_instance(const struct ordered_card *card)
{
	return card->info.mig == SIM_MIG_INSTANCE;
}

static int instances_last(const struct ordered_card *x, const struct ordered_card *y)
{
	if (is_instance(x) != is_instance(y))
		return is_instance(x) - is_instance(y);
	return is_instance(x) ? (int)x->card - (int)y->card : 0;
}

static int by_pci_address(const void *a, const void *b)
{
	const struct ordered_card *x = a, *y = b;
	int last = instances_last(x, y);

	return last ? last : sim_pci_compare(&x->info, &y->info);
}

/* Orders by number of SMs. (The real driver guesses which GPU is fastest.) */
static int fastest_first(const void *a, const void *b)
{
	const struct ordered_card *x = a, *y = b;
	int last = instances_last(x, y);

	if (last)
		return last;
	return x->info.sms != y->info.sms ? y->info.sms - x->info.sms : by_pci_address(a, b);
}

/* Returns the only device whose UUID begins with the word; -1 if there is none or several. */
static int by_uuid(const char *word, size_t length, const struct listed *l)
{
	int found = -1;

	for (int i = 0; i < l->all_n; i++) {
		if (strncasecmp(l->item[i].info.uuid, word, length))
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/*
 * Returns the device that the next entry of CUDA_VISIBLE_DEVICES names, and moves *at past the entry. -1: the entry is invalid,
 * which ends the list. As in driver 580, a UUID may be shortened, and all entries must be of the first one's kind: numbers or
 * UUIDs.
 */
static int next_visible(const char **at, bool *is_uuid, bool is_first, const struct listed *l)
{
	const char *word = *at + strspn(*at, " \t");
	size_t length = strcspn(word, ",");
	bool begins_uuid = length > 4 && (!strncmp(word, "GPU-", 4) || !strncmp(word, "MIG-", 4));
	char *end;

	*at = word + length + (word[length] == ',');
	while (length && (word[length - 1] == ' ' || word[length - 1] == '\t'))
		length--;
	if (is_first)
		*is_uuid = begins_uuid;
	else if (*is_uuid != begins_uuid)
		return -1;
	if (begins_uuid)
		return by_uuid(word, length, l);
	long index = strtol(word, &end, 10);
	return end != word && index >= 0 && index < l->cards_n ? (int)index : -1;
}

/* Returns the device or, for a GPU in MIG mode, its first instance; NULL if that GPU has no instances. */
static const struct ordered_card *usable_device(const struct listed *l, int at)
{
	const struct ordered_card *card = &l->item[at];

	if (card->info.mig != SIM_MIG_ON)
		return card;
	for (int i = l->cards_n; i < l->all_n; i++)
		if (l->item[i].info.parent == card->card)
			return &l->item[i];
	return NULL;
}

static const unsigned char *card_uuid(const struct listed *l, const struct ordered_card *of)
{
	for (int i = 0; is_instance(of) && i < l->cards_n; i++)
		if (l->item[i].card == of->info.parent)
			return l->item[i].info.uuid_bytes;
	return of->info.uuid_bytes;
}

static void add(const struct listed *l, const struct ordered_card *card)
{
	struct sim_device *device = &sim.devices[sim.devices_n++];

	device->info = card->info;
	device->card = card->card;
	memcpy(device->card_uuid, card_uuid(l, card), sizeof(device->card_uuid));
}

/* A program that may use MIG instances gets only the first of them, and no other device. */
static void keep_one_instance(void)
{
	for (int i = 0; i < sim.devices_n; i++) {
		if (sim.devices[i].info.mig != SIM_MIG_INSTANCE)
			continue;
		sim.devices[0] = sim.devices[i];
		sim.devices_n = 1;
	}
}

/* As the driver, returns CUDA_ERROR_INVALID_DEVICE if the list names a GPU twice. */
static CUresult choose(const char *visible, const struct listed *l)
{
	bool is_uuid = false, taken[SIM_MAX_CARDS] = { false };

	sim.devices_n = 0;
	for (int i = 0; visible ? *visible != '\0' : i < l->cards_n; i++) {
		int at = visible ? next_visible(&visible, &is_uuid, i == 0, l) : i;

		if (at < 0)
			break;
		SIM_FAIL_IF(taken[at], CUDA_ERROR_INVALID_DEVICE);
		taken[at] = true;
		if (usable_device(l, at))
			add(l, usable_device(l, at));
	}
	keep_one_instance();
	return sim.devices_n ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult sim_find_devices(void)
{
	struct listed l = { .all_n = (int)sim.link.cards };
	const char *order = getenv("CUDA_DEVICE_ORDER");

	for (int i = 0; i < l.all_n; i++) {
		l.item[i].card = (uint32_t)i;
		SIM_FAIL_IF(link_card_info(&sim.link, (uint32_t)i, &l.item[i].info),
			    CUDA_ERROR_NO_DEVICE);
		l.cards_n += !is_instance(&l.item[i]);
	}
	qsort(l.item, (size_t)l.all_n, sizeof(*l.item),
	      order && !strcmp(order, "PCI_BUS_ID") ? by_pci_address : fastest_first);
	return choose(getenv("CUDA_VISIBLE_DEVICES"), &l);
}
