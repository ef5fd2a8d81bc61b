#include "daemon/state/node/node.h"

#include <string.h>

#include "base/clock.h"

/* Time from a change to the write of use.json (use_state.h), which takes milliseconds. */
#define SAVE_USE_DELAY_NS (3 * NSEC_PER_SEC)

struct tenant *node_find_tenant(struct node *node, const char *name_or_id)
{
	struct tenant *t = text_index_find(&node->tenant_names, name_or_id);
	return t ? t : text_index_find(&node->tenant_ids, name_or_id);
}

struct card *node_find_card(struct node *node, const uint8_t uuid[16])
{
	for (unsigned i = 0; i < node->card_count; i++)
		if (!memcmp(node->card[i].info.uuid, uuid, 16))
			return &node->card[i];
	return NULL;
}

struct card *node_find_card_text(struct node *node, const char *text)
{
	uint8_t uuid[16];
	return gpu_uuid_parse(text, uuid) < 0 ? NULL : node_find_card(node, uuid);
}

void node_grant_soon(struct node *node)
{
	if (node->waiter_count) {
		loop_arm(node->memory_wait_timer, 0, 0);
		return;
	}
	/* Without waiting tenants no grants are decided, so release here the memory that was kept for them. */
	for (unsigned i = 0; i < node->card_count; i++)
		node->card[i].kept_bytes = 0;
}

void node_save_use_soon(struct node *node)
{
	if (!node->use_unsaved && node->use_timer)
		loop_arm(node->use_timer, SAVE_USE_DELAY_NS, 0);
	node->use_unsaved = true;
}
