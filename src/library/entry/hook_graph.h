/* Memory of graphs: what the rest of the library does with it. The hooks are in hooks.h. */
#pragma once

#include <stdint.h>

/* Helper thread: settles the charge of every device's graph memory, 50 times a second at most. */
void hook_graph_refresh(uint64_t now_ns);

/* In a forked child. */
void hook_graph_reset(void);
