/*
 * The state file "<run dir>/use.json": the GPU time that tenants and containers have used, and the
 * GPU tasks. With it, the next daemon continues these counts, even if this one is killed. The file
 * is written a few seconds after a change, so a kill loses at most these seconds. Use keeps
 * decaying while there is no daemon (stamp.h). A torn or foreign file is set aside with one line in
 * the log, and counting starts from zero. Main thread only.
 */
#pragma once

#include <stdint.h>

struct node;

/*
 * Loads tenants' use for use.h, and tasks and containers into node->records. Call after the cards
 * were opened, and before there are tenants and the GPU watch starts.
 */
void use_state_load(struct node *node);
/* Handler of node->use_timer, which node_save_use_soon() starts. `data` is the node. */
void use_state_save_due(void *data, uint32_t events);
/* Writes the file at the daemon's end. Does nothing if use_state_load() was not called. */
void use_state_save(struct node *node);
