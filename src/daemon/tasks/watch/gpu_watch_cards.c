/* Finds the cards that a process may come to use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/tasks/watch/gpu_watch_inside.h"
#include "daemon/tasks/watch/named_cards.h"
#include "daemon/util/procfs.h"

#define ENVIRON_MOST (256 << 10)

static bool has_node(int pid, const char *leaf, unsigned minor)
{
	char path[80];
	snprintf(path, sizeof(path), "/proc/%d/root/dev/%s%u", pid, leaf, minor);
	return access(path, F_OK) == 0;
}

/* A MIG instance shares its GPU's device file, so the file of its capability decides. */
static bool is_visible(const struct gpu_info *info, int pid)
{
	if (info->caps.is_known)
		return has_node(pid, "nvidia-caps/nvidia-cap", info->caps.compute_instance);
	return has_node(pid, "nvidia", info->minor);
}

/* Returns all cards if they are simulated, if a device number is unknown, or if the process sees none of the device files. */
static uint64_t visible_cards(const struct gpu_watch *w, int pid)
{
	uint64_t all = w->tasks->card_count < 64 ? (UINT64_C(1) << w->tasks->card_count) - 1
						 : UINT64_MAX;
	uint64_t cards = 0;
	for (unsigned i = 0; !w->node->simulated && i < w->tasks->card_count; i++) {
		if (!w->node->card[i].info.minor_known)
			return all;
		if (is_visible(&w->node->card[i].info, pid))
			cards |= UINT64_C(1) << i;
	}
	return cards ? cards : all;
}

/*
 * Returns true if numbers in CUDA_VISIBLE_DEVICES can be matched to cards. Our cards are in PCI order, but CUDA sorts
 * different models by speed, unless CUDA_DEVICE_ORDER says otherwise.
 */
static bool has_order(const struct gpu_watch *w, uint64_t visible, const char *order)
{
	const char *model = NULL;
	if (order && !strcmp(order, "PCI_BUS_ID"))
		return true;
	for (unsigned i = 0; i < w->tasks->card_count; i++) {
		if (!(visible >> i & 1))
			continue;
		if (model && strcmp(model, w->node->card[i].info.name) != 0)
			return false;
		model = w->node->card[i].info.name;
	}
	return true;
}

uint64_t gpu_watch_cards(const struct gpu_watch *w, int pid)
{
	cleanup_free char *text = malloc(ENVIRON_MOST);
	const char *uuid[NODE_MAX_CARDS];
	uint64_t visible = visible_cards(w, pid);
	int length = text ? procfs_read(pid, "environ", text, ENVIRON_MOST) : 0;
	const char *list = named_in_environment(text, length, "CUDA_VISIBLE_DEVICES=");
	if (!list)
		return visible;
	for (unsigned i = 0; i < w->tasks->card_count; i++)
		uuid[i] = w->node->card[i].info.uuid_text;
	const char *order = named_in_environment(text, length, "CUDA_DEVICE_ORDER=");
	return named_cards(list, uuid, w->tasks->card_count, visible, has_order(w, visible, order));
}
