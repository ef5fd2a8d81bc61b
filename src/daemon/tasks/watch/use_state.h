/*
 * The state file "<run dir>/use.json": how much GPU time tenants and containers have used, and the GPU
 * tasks that there were, so that a daemon that ends, or is killed, is no amnesty. Written a few seconds
 * after something changed: so much of it is lost at most. What was used goes on to fade while there is no
 * daemon (stamp.h). A file that is torn or another program's is set aside, with one line in the log, and
 * counting begins anew. Main thread only.
 */
#pragma once

#include <stdint.h>

struct node;

/* Takes over what the file has: use.h's, and node->records. After the cards, before tenants and watch. */
void use_state_load(struct node *node);
/* Handler of node->use_timer, which node_save_use_soon() starts: `data` is the node. */
void use_state_save_due(void *data, uint32_t events);
/* Writes it now, as far as there has been a use_state_load(): at the end. */
void use_state_save(struct node *node);
