/* The driver reads an address when a graph node is made or changed, so the memory there must be on the GPU then (swap.h). */
#include "library/entry/hooks.h"
#include "library/memory/swap_hold.h"

#define NAMES_MEMORY(name, params, args) \
	DEFINE_HOOK(hook_##name, real_function, params) \
	{ \
		WITH_MEMORY_HELD(); \
		return real_function args; \
	}

NAMES_MEMORY(add_copy_node,
	     (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
	      const CUDA_MEMCPY3D *copy, CUcontext ctx),
	     (node, graph, dependencies, count, copy, ctx))
NAMES_MEMORY(add_set_node,
	     (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
	      const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx),
	     (node, graph, dependencies, count, params, ctx))
NAMES_MEMORY(set_copy_node, (CUgraphNode node, const CUDA_MEMCPY3D *copy), (node, copy))
NAMES_MEMORY(set_set_node, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params), (node, params))
NAMES_MEMORY(set_exec_copy_node,
	     (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext ctx),
	     (exec, node, copy, ctx))
NAMES_MEMORY(set_exec_set_node,
	     (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params,
	      CUcontext ctx),
	     (exec, node, params, ctx))
