/* Memory of graphs, as the rest of the library uses it. The hooks are declared in hooks.h. */
#pragma once

#include <stdint.h>

/* Helper thread: brings the charge of every device's graph memory up to date, at most 50 times a second. */
void hook_graph_refresh(uint64_t now_ns);

/* Call in a forked child: forgets the state of the parent. */
void hook_graph_reset(void);
