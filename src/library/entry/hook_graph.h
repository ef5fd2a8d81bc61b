#pragma once

#include <stdint.h>

/* Updates the charge of every device's graph memory, at most 50 times a second. Called by the helper thread (helper.h). */
void hook_graph_refresh(uint64_t now_ns);

/* Call in a forked child: forgets the graphs' memory. */
void hook_graph_reset(void);
