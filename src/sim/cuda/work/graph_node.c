#include <stdio.h>

#include "sim/cuda/sim.h"

#define TYPE_COPY 1
#define TYPE_SET 2
#define TYPE_HOST 3
#define TYPE_EMPTY 5

static CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
		    CUgraphNodeParams *params)
{
	SIM_FAIL_IF(!params, CUDA_ERROR_INVALID_VALUE);
	switch (params->type) {
	case 0: return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &params->kernel);
	case TYPE_COPY:
		return cuGraphAddMemcpyNode(node, graph, dependencies, count, &params->copy.copy,
					    params->copy.ctx);
	case TYPE_SET:
		return cuGraphAddMemsetNode(node, graph, dependencies, count, &params->set.params,
					    params->set.ctx);
	case TYPE_HOST: return cuGraphAddHostNode(node, graph, dependencies, count, &params->host);
	case TYPE_EMPTY: return cuGraphAddEmptyNode(node, graph, dependencies, count);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return cuGraphAddMemAllocNode(node, graph, dependencies, count, &params->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return cuGraphAddMemFreeNode(node, graph, dependencies, count, params->free);
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

SIM_FUNCTION(cuGraphAddNode,
	     (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
	      CUgraphNodeParams *params),
	     add(node, graph, dependencies, count, params))
SIM_FUNCTION(cuGraphAddNode_v2,
	     (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies,
	      const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params),
	     add(node, graph, dependencies, count, params))

/* Writes the graph's nodes without edges, because graphs keep none. */
CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	size_t count = 0;

	SIM_ENTER(cuGraphDebugDotPrint);
	CUresult r = cuGraphGetNodes(graph, NULL, &count);
	SIM_FAIL_IF(r != CUDA_SUCCESS || !path, CUDA_ERROR_INVALID_VALUE);
	FILE *file = fopen(path, "we");
	SIM_FAIL_IF(!file, CUDA_ERROR_OPERATING_SYSTEM);
	fprintf(file, "digraph dot {\n");
	for (size_t i = 0; i < count; i++)
		fprintf(file, "\tnode%zu;\n", i);
	fprintf(file, "}\n");
	return fclose(file) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
