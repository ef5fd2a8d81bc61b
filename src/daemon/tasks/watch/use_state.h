/*
 * The file "<run dir>/use.json" keeps the GPU time of tenants and containers, and the GPU tasks, for the next daemon. It is
 * written a few seconds after a change, so a kill loses at most the changes of these seconds. Use decays also while no daemon
 * runs (stamp.h). A file that is damaged or of another version is renamed to use.json.bad, which is logged. Main thread only.
 */
#pragma once

#include <stdint.h>

struct node;

/*
 * Loads the tenants' use (daemon/state/use.h), and tasks and containers into node->records. Call after the cards were found,
 * before tenants and the GPU watch start.
 */
void use_state_load(struct node *node);
/* Handler of node->use_timer, which node_save_use_soon() starts. `data` is the node. */
void use_state_save_due(void *data, uint32_t events);
/* Call at the daemon's end. Does nothing unless use_state_load() was called and the GPU watch has taken node->records. */
void use_state_save(struct node *node);
