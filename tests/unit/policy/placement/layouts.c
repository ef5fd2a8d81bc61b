#include "layouts.h"

#include <stdio.h>

#include "sim/server/spec.h"

const char *const layout_names[LAYOUT_COUNT] = { "dgx-1v", "dgx-a100", "pcie", "mixed" };

#define MOST_SPECS 16
static struct spec specs[MOST_SPECS]; /* nodes point into them: each is kept */
static unsigned spec_count;

static enum place_level level(const struct sim_card_info *a, const struct sim_card_info *b)
{
	unsigned same = 0;

	if (a->numa != b->numa || a->numa < 0)
		return PLACE_LEVEL_SYS;
	while (same < a->pcie_depth && same < b->pcie_depth && a->pcie[same] == b->pcie[same])
		same++;
	if (same == 0)
		return PLACE_LEVEL_NODE;
	if (same == 1)
		return PLACE_LEVEL_PHB;
	return same == a->pcie_depth && same == b->pcie_depth ? PLACE_LEVEL_PIX : PLACE_LEVEL_PXB;
}

struct place_node layout_node(const char *name)
{
	struct place_node node = { 0 };
	struct spec *spec = &specs[spec_count++];
	char error[256];

	assert_true(spec_count <= MOST_SPECS);
	if (spec_load(spec, name, error, sizeof(error)) < 0)
		fail_msg("%s", error);
	node.card_count = spec->cards_n;
	for (unsigned i = 0; i < node.card_count; i++) {
		const struct sim_card_info *info = &spec->cards[i].info;
		node.card[i] = (struct place_card){ .uuid = info->uuid,
						    .type = info->name,
						    .memory_total_bytes = info->memory_bytes,
						    .cores_total_mpct = PLACE_CORES_WHOLE_MPCT,
						    .slots_total = 10,
						    .numa_known = info->numa >= 0,
						    .numa = (unsigned)info->numa };
		for (unsigned j = 0; j < i; j++)
			place_node_link(
				&node, i, j,
				(struct place_link){ .nvlinks = info->links[j],
						     .level = level(info, &spec->cards[j].info) });
	}
	return node;
}

void layout_disturb(struct place_node *node, uint64_t *random)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		struct place_card *card = &node->card[i];
		card->is_sick = random_between(random, 0, 39) == 0;
		card->is_cordoned = random_between(random, 0, 39) == 0;
		card->slots_used = 0;
		card->memory_used_bytes = 0;
		card->cores_used_mpct = 0;
		switch (random_between(random, 0, 5)) {
		case 0: /* wholly */
			card->slots_used = 1;
			card->memory_used_bytes = card->memory_total_bytes;
			card->cores_used_mpct = PLACE_CORES_WHOLE_MPCT;
			break;
		case 1:
		case 2: /* by some */
			card->slots_used = (uint32_t)random_between(random, 1, 10);
			card->memory_used_bytes =
				random_between(random, 0, card->memory_total_bytes / MIB) * MIB;
			card->cores_used_mpct = (uint32_t)random_between(random, 0, 100) * 1000;
			break;
		default: break;
		}
	}
}

uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return low + (z ^ (z >> 31)) % (high - low + 1);
}
