/* Streams and captures, as far as the gate must know of them. */
#include "interpose/ahead.h"
#include "interpose/flight.h"
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/swap_hold.h"

static CUresult capture_began(CUresult result)
{
	if (result != CUDA_SUCCESS)
		flight_capture_ended();
	return result;
}

/* From here on nothing is queued (ahead.h), and what is goes to the driver before the capture begins. */
CUresult hook_begin_capture(CUresult (*begin)(CUstream, CUstreamCaptureMode), CUstream stream,
			    CUstreamCaptureMode mode)
{
	WITH_MEMORY_STILL();
	flight_capture_begins();
	CUresult result = ahead_flush("cuStreamBeginCapture");
	return capture_began(result == CUDA_SUCCESS ? begin(stream, mode) : result);
}

CUresult hook_begin_capture_to_graph(CUresult (*begin)(CUstream, CUgraph, const CUgraphNode *,
						       const CUgraphEdgeData *, size_t,
						       CUstreamCaptureMode),
				     CUstream stream, CUgraph graph,
				     const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
				     size_t count, CUstreamCaptureMode mode)
{
	WITH_MEMORY_STILL();
	flight_capture_begins();
	CUresult result = ahead_flush("cuStreamBeginCapture");
	if (result != CUDA_SUCCESS)
		return capture_began(result);
	return capture_began(begin(stream, graph, dependencies, edges, count, mode));
}

/* A capture that was spoilt ends too, with an error; one that never was, or another thread's, not. */
CUresult hook_end_capture(CUresult (*end)(CUstream, CUgraph *), CUstream stream, CUgraph *graph)
{
	CUresult result = end(stream, graph);

	if (result != CUDA_ERROR_ILLEGAL_STATE && result != CUDA_ERROR_INVALID_HANDLE &&
	    result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
		flight_capture_ended();
	return result;
}

CUresult hook_stream_destroy(CUresult (*destroy)(CUstream), CUstream stream)
{
	if (guest_is_active())
		flight_drop_stream(stream);
	return destroy(stream);
}
