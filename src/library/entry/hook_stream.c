#include "library/entry/hooks.h"
#include "library/launch/captures.h"
#include "library/launch/inflight/inflight.h"
#include "library/launch/step.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"

CUresult hook_begin_capture(CUresult (*begin)(CUstream, CUstreamCaptureMode), CUstream stream,
			    CUstreamCaptureMode mode)
{
	WITH_MEMORY_STILL();
	captures_begin();
	return captures_began(stream, begin(stream, mode));
}

CUresult hook_begin_capture_to_graph(CUresult (*begin)(CUstream, CUgraph, const CUgraphNode *,
						       const CUgraphEdgeData *, size_t,
						       CUstreamCaptureMode),
				     CUstream stream, CUgraph graph,
				     const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
				     size_t count, CUstreamCaptureMode mode)
{
	WITH_MEMORY_STILL();
	captures_begin();
	return captures_began(stream, begin(stream, graph, dependencies, edges, count, mode));
}

CUresult hook_end_capture(CUresult (*end)(CUstream, CUgraph *), CUstream stream, CUgraph *graph)
{
	CUresult result = end(stream, graph);

	captures_end_called(stream, result);
	return result;
}

CUresult hook_stream_destroy(CUresult (*destroy)(CUstream), CUstream stream)
{
	if (process_is_active())
		inflight_drop_stream(stream);
	CUresult result = destroy(stream);
	if (result == CUDA_SUCCESS && atomic_load(&process_state.captures))
		captures_stream_gone(stream);
	return result;
}

CUresult hook_event_synchronize(CUresult (*synchronize)(CUevent), CUevent event)
{
	CUresult result = synchronize(event);

	if (result == CUDA_SUCCESS)
		step_after_event();
	return result;
}
