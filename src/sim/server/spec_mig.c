/* The MIG instances of a description. A program sees each instance as a GPU of its own. */
#include <stdio.h>
#include <string.h>

#include "sim/server/spec.h"
#include "sim/server/spec_inside.h"

#define COMPUTE_SLICES 7
#define MEMORY_SLICES 8
#define GIB (1ull << 30)
#define FIRST_GPU_INSTANCE 7 /* real GPUs number the smallest instances from 7 */

/* "1g.18gb" or "1g.18gb+me": compute slices and memory */
static int read_profile(const struct spec_at *at, const char *word, size_t length,
			struct spec_profile *ret)
{
	struct spec_profile p = { 0 };
	int end = 0;

	if (length >= sizeof(p.name))
		return spec_fail(at, "mig: '%.*s' is longer than a profile's name", (int)length,
				 word);
	memcpy(p.name, word, length);
	if (sscanf(p.name, "%1ug.%4ugb%n", &p.slices, &p.memory_gb, &end) < 2 || !end ||
	    (p.name[end] && p.name[end] != '+') || !p.slices || p.slices > COMPUTE_SLICES ||
	    !p.memory_gb)
		return spec_fail(at, "mig: '%s' is not a profile like 1g.18gb", p.name);
	*ret = p;
	return 0;
}

int spec_set_mig(const struct spec_at *at, struct spec_card *card, const char *value)
{
	const char *p = value;

	card->info.mig = SIM_MIG_ON;
	card->profiles_n = 0;
	if (!strcmp(value, "on"))
		return 0;
	while (*p) {
		size_t n = strcspn(p, ", ");
		int r;

		if (card->profiles_n == SIM_MIG_INSTANCES)
			return spec_fail(at, "mig: more than %d instances: leave some out",
					 SIM_MIG_INSTANCES);
		r = read_profile(at, p, n, &card->profile[card->profiles_n]);
		if (r < 0)
			return r;
		card->profiles_n++;
		p += n;
		while (*p == ' ' || *p == ',')
			p++;
	}
	return 0;
}

/* Returns how many eighths of the GPU's memory come nearest to the size in the profile's name. */
static unsigned int memory_slices(const struct sim_card_info *card, const struct spec_profile *p)
{
	uint64_t eighth = card->memory_bytes / MEMORY_SLICES;
	uint64_t slices = (p->memory_gb * GIB + eighth / 2) / eighth;

	return slices ? (unsigned int)slices : 1;
}

static void make_instance(struct spec_card *instance, const struct spec_card *card, uint32_t parent,
			  uint32_t number)
{
	const struct spec_profile *p = &card->profile[number];
	struct sim_card_info *info = &instance->info;
	unsigned int eighths = memory_slices(&card->info, p);

	*instance = *card;
	instance->profiles_n = 0;
	info->mig = SIM_MIG_INSTANCE;
	info->parent = parent;
	info->gpu_instance = FIRST_GPU_INSTANCE + number;
	info->compute_instance = 0;
	info->slices = p->slices;
	info->peers = info->switched = 0;
	memset(info->links, 0, sizeof(info->links));
	snprintf(info->name, sizeof(info->name), "%.60s MIG %s", card->info.name, p->name);
	spec_make_uuid(info, "MIG-", card->info.uuid, number);
	info->memory_bytes = card->info.memory_bytes / MEMORY_SLICES * eighths;
	info->memory_bytes -= info->memory_bytes % info->block_bytes;
	info->copy_bytes_per_s = card->info.copy_bytes_per_s * eighths / MEMORY_SLICES;
	info->set_bytes_per_s = card->info.set_bytes_per_s * eighths / MEMORY_SLICES;
	if (p->slices < COMPUTE_SLICES)
		info->sms = card->info.sms * (int32_t)p->slices / MEMORY_SLICES;
	if (!info->sms)
		info->sms = 1;
}

static int add_instances(const struct spec_at *at, struct spec *spec, uint32_t parent)
{
	const struct spec_card copy = spec->cards[parent], *card = &copy;
	unsigned int compute = 0, memory = 0;

	for (uint32_t i = 0; i < card->profiles_n; i++) {
		struct spec_card *instance = &spec->cards[spec->cards_n];

		if (spec->cards_n == SIM_MAX_CARDS)
			return spec_fail(at, "more than %d GPUs and MIG instances: leave some out",
					 SIM_MAX_CARDS);
		compute += card->profile[i].slices;
		memory += memory_slices(&card->info, &card->profile[i]);
		if (compute > COMPUTE_SLICES || memory > MEMORY_SLICES)
			return spec_fail(at,
					 "GPU %u: mig: no room for the %s: a GPU has %d slices of "
					 "compute, %d of memory",
					 parent, card->profile[i].name, COMPUTE_SLICES,
					 MEMORY_SLICES);
		make_instance(instance, card, parent, i);
		if (instance->info.context_bytes > instance->info.memory_bytes)
			return spec_fail(
				at,
				"GPU %u: mig: context must not be larger than the memory of instance %s",
				parent, card->profile[i].name);
		spec->cards_n++;
	}
	return 0;
}

int spec_finish_mig(const struct spec_at *at, struct spec *spec)
{
	uint32_t cards_n = spec->cards_n;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < cards_n; i++)
		r = add_instances(at, spec, i);
	return r;
}
