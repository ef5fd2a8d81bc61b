#include "library/entry/hooks.h"
#include "library/launch/captures.h"
#include "library/launch/inflight/inflight.h"
#include "library/launch/step.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"

DEFINE_HOOK(hook_begin_capture, begin, (CUstream stream, CUstreamCaptureMode mode))
{
	WITH_MEMORY_STILL();
	captures_begin();
	return captures_began(stream, begin(stream, mode));
}

DEFINE_HOOK(hook_begin_capture_to_graph, begin,
	    (CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
	     const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode))
{
	WITH_MEMORY_STILL();
	captures_begin();
	return captures_began(stream, begin(stream, graph, dependencies, edges, count, mode));
}

DEFINE_HOOK(hook_end_capture, end, (CUstream stream, CUgraph *graph))
{
	CUresult result = end(stream, graph);

	captures_end_called(stream, result);
	return result;
}

DEFINE_HOOK(hook_stream_destroy, destroy, (CUstream stream))
{
	if (process_is_active())
		inflight_drop_stream(stream);
	CUresult result = destroy(stream);
	if (result == CUDA_SUCCESS && atomic_load(&process_state.captures))
		captures_stream_gone(stream);
	return result;
}

DEFINE_HOOK(hook_event_synchronize, synchronize, (CUevent event))
{
	CUresult result = synchronize(event);

	if (result == CUDA_SUCCESS)
		step_after_event();
	return result;
}
