/* The NVLinks and PCIe positions of a description's GPUs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/server/spec.h"
#include "sim/server/spec_inside.h"

#define LINKS_BY_DEFAULT 0xff /* no number given for this peer; divide_links() sets it */

/* "switch:12": all links go to NVSwitches, which connect the GPU to all other GPUs with "switch". */
static int set_switch(const struct spec_at *at, struct spec_card *card, const char *value)
{
	char *end;
	long links = SIM_LINKS;

	value += strlen("switch");
	if (*value == ':')
		links = strtol(value + 1, &end, 10);
	if (*value && (*value != ':' || end == value + 1 || *end || links < 1 || links > SIM_LINKS))
		return spec_fail(at,
				 "nvlink: 'switch%s': must be switch or switch:N, N from 1 to %d",
				 value, SIM_LINKS);
	card->info.switched = 1;
	memset(card->info.links, (int)links, sizeof(card->info.links));
	return 0;
}

int spec_set_nvlink(const struct spec_at *at, struct spec_card *card, const char *value)
{
	const char *p = value;

	card->info.peers = 0;
	card->info.switched = 0;
	memset(card->info.links, 0, sizeof(card->info.links));
	if (!strncmp(value, "switch", 6))
		return set_switch(at, card, value);
	for (;;) {
		char *end;
		long peer = strtol(p, &end, 10), links = LINKS_BY_DEFAULT;

		if (end == p || peer < 0 || peer >= SIM_MAX_CARDS)
			return spec_fail(at, "nvlink: '%s' is not a list of GPU numbers (0 to %d)",
					 value, SIM_MAX_CARDS - 1);
		p = end;
		if (*p == ':') {
			links = strtol(p + 1, &end, 10);
			if (end == p + 1 || links < 1 || links > SIM_LINKS)
				return spec_fail(at, "nvlink: '%s': 1 to %d links to a GPU", value,
						 SIM_LINKS);
			p = end;
		}
		card->info.peers |= 1u << peer;
		card->info.links[peer] = (uint8_t)links;
		while (*p == ' ' || *p == ',')
			p++;
		if (!*p)
			return 0;
	}
}

int spec_set_pcie(const struct spec_at *at, struct spec_card *card, const char *value)
{
	const char *p = value;

	card->info.pcie_depth = 0;
	for (;;) {
		char *end;
		long step = isdigit((unsigned char)*p) ? strtol(p, &end, 10) : -1;

		if (step < 0 || step > UINT8_MAX || (*end && *end != '/') ||
		    card->info.pcie_depth == SIM_PCIE_DEPTH)
			return spec_fail(at,
					 "pcie: '%s' is not like 0/1: a host bridge, and at most %d "
					 "switches below it, each 0 to %d",
					 value, SIM_PCIE_DEPTH - 1, UINT8_MAX);
		card->info.pcie[card->info.pcie_depth++] = (uint8_t)step;
		if (!*end)
			return 0;
		p = end + 1;
	}
}

/* Divides a GPU's remaining links among the peers for which no number was given. */
static void divide_links(struct sim_card_info *card)
{
	int named = 0, open = 0;

	for (int i = 0; i < SIM_MAX_CARDS; i++) {
		if (!(card->peers >> i & 1))
			continue;
		if (card->links[i] == LINKS_BY_DEFAULT)
			open++;
		else
			named += card->links[i];
	}
	for (int i = 0; i < SIM_MAX_CARDS; i++)
		if (card->links[i] == LINKS_BY_DEFAULT)
			card->links[i] = named + open <= SIM_LINKS
						 ? (uint8_t)((SIM_LINKS - named) / open)
						 : 1;
}

static void find_switched(struct spec *spec, uint32_t self)
{
	struct sim_card_info *card = &spec->cards[self].info;

	for (uint32_t i = 0; i < SIM_MAX_CARDS; i++) {
		if (i < spec->cards_n && i != self && spec->cards[i].info.switched)
			card->peers |= 1u << i;
		else
			card->links[i] = 0;
	}
}

int spec_finish_links(const struct spec_at *at, struct spec *spec)
{
	for (uint32_t i = 0; i < spec->cards_n; i++)
		if (spec->cards[i].info.switched)
			find_switched(spec, i);
	for (uint32_t i = 0; i < spec->cards_n; i++) {
		const struct sim_card_info *card = &spec->cards[i].info;

		if (card->peers >> spec->cards_n || card->peers >> i & 1)
			return spec_fail(
				at, "GPU %u: nvlink must name other GPUs of this file, which has %u",
				i, spec->cards_n);
		for (uint32_t j = 0; j < spec->cards_n; j++)
			if ((card->peers >> j & 1) && !(spec->cards[j].info.peers >> i & 1))
				return spec_fail(
					at,
					"nvlink: GPU %u lists GPU %u, but GPU %u does not list GPU %u: "
					"both must list each other",
					i, j, j, i);
	}
	for (uint32_t i = 0; i < spec->cards_n; i++)
		divide_links(&spec->cards[i].info);
	for (uint32_t i = 0; i < spec->cards_n; i++) {
		struct sim_card_info *card = &spec->cards[i].info;
		unsigned int links = 0;

		for (uint32_t j = 0; j < spec->cards_n; j++) {
			struct sim_card_info *other = &spec->cards[j].info;

			/* If two GPUs give different numbers of links to each other, the smaller one holds. */
			if (card->links[j] < other->links[i])
				other->links[i] = card->links[j];
			links += card->links[j];
		}
		if (!card->switched && links > SIM_LINKS)
			return spec_fail(at, "GPU %u: %u nvlinks: a GPU has %d at most", i, links,
					 SIM_LINKS);
	}
	return 0;
}
