/* Stream capture: which calls are unsafe meanwhile, how streams join a capture and join back, and what breaks it. */
#include <stdlib.h>

#include "sim/cuda/sim.h"

struct sim_capture {
	struct sim_capture *next;
	uint64_t id;
	CUstream origin;
	CUstreamCaptureMode mode;
	pthread_t thread;
	CUgraph graph;
	bool foreign; /* the program made the graph */
	bool invalid;
	CUstream members[32]; /* streams that joined the capture, without `origin` */
	int members_n;
};

static struct sim_capture *captures; /* guarded by sim_capture_lock */
static uint64_t ids, joinings;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = thread_mode;

	SIM_ENTER(cuThreadExchangeStreamCaptureMode);
	SIM_FAIL_IF(!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED,
		    CUDA_ERROR_INVALID_VALUE);
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

CUresult sim_unsafe_slow(void)
{
	CUresult r = CUDA_SUCCESS;

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	SIM_WITH(&sim_capture_lock);
	for (struct sim_capture *c = captures; c; c = c->next) {
		bool mine = pthread_equal(c->thread, pthread_self()) &&
			    c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
		bool global = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
			      c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;

		if (mine || global) {
			c->invalid = true;
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return r;
}

/* Breaks the captures on which work of a legacy stream would depend; fails if there are any. Hold sim_capture_lock. */
static CUresult legacy_breaks(CUstream stream)
{
	CUresult r = CUDA_SUCCESS;

	for (struct sim_capture *c = captures; stream->legacy && c; c = c->next)
		if (c->origin->ctx == stream->ctx && !(c->origin->flags & CU_STREAM_NON_BLOCKING)) {
			c->invalid = true;
			r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	return r;
}

/*
 * Returns the capture that takes the stream's work. If NULL, the server takes it, or the call fails if *ret_result is not
 * CUDA_SUCCESS.
 */
static struct sim_capture *taker(CUstream stream, CUresult *ret_result)
{
	struct sim_capture *c = stream->capture;

	*ret_result = !c           ? legacy_breaks(stream)
		      : c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
				   : CUDA_SUCCESS;
	return *ret_result == CUDA_SUCCESS ? c : NULL;
}

bool sim_capture_step(CUstream stream, const struct sim_step *step, CUresult *ret_result)
{
	SIM_WITH(&sim_capture_lock);
	struct sim_capture *c = taker(stream, ret_result);
	if (!c)
		return *ret_result != CUDA_SUCCESS;
	stream->joined = false;
	if (!sim_graph_add(c->graph, step, NULL))
		*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
	return true;
}

bool sim_capture_record(CUstream stream, CUevent event, CUresult *ret_result)
{
	SIM_WITH(&sim_capture_lock);
	struct sim_capture *c = taker(stream, ret_result);
	if (!c)
		return *ret_result != CUDA_SUCCESS;
	pthread_mutex_lock(&sim_event_lock);
	event->capture_id = c->id;
	event->captured_in = stream->joining;
	event->done = false;
	event->records++;
	pthread_mutex_unlock(&sim_event_lock);
	return true;
}

/* Marks as joined the stream in which the event was captured. Does nothing if that stream is gone. */
static void mark_joined(const struct sim_capture *c, CUevent event)
{
	for (int i = 0; i < c->members_n; i++)
		if (c->members[i]->joining == event->captured_in)
			c->members[i]->joined = true;
}

static CUresult await(struct sim_capture *of_stream, struct sim_capture *of_event, CUstream stream,
		      CUevent event)
{
	SIM_FAIL_IF(of_stream && of_stream->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	if (!of_event) {
		/* The event is from before the capture, or from outside it. */
		of_stream->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (of_stream && of_stream != of_event) {
		of_stream->invalid = of_event->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (of_stream) {
		if (event->captured_in != stream->joining)
			mark_joined(of_event, event);
		return CUDA_SUCCESS;
	}
	SIM_FAIL_IF(of_event->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	if (stream->legacy || of_event->members_n == 32) {
		of_event->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	of_event->members[of_event->members_n++] = stream;
	stream->capture = of_event;
	stream->joining = ++joinings;
	stream->joined = false;
	return CUDA_SUCCESS;
}

bool sim_capture_wait_event(CUstream stream, CUevent event, CUresult *ret_result)
{
	struct sim_capture *of_event = NULL;

	SIM_WITH(&sim_capture_lock);
	if (event->capture_id)
		for (of_event = captures; of_event && of_event->id != event->capture_id;)
			of_event = of_event->next;
	bool mine = stream->capture || of_event;
	if (mine)
		*ret_result = await(stream->capture, of_event, stream, event);
	return mine;
}

bool sim_is_capturing(CUstream stream)
{
	if (!atomic_load_explicit(&sim.captures, memory_order_relaxed))
		return false;
	SIM_WITH(&sim_capture_lock);
	return stream->capture;
}

CUresult sim_capture_forbids_wait(CUstream stream)
{
	if (!atomic_load_explicit(&sim.captures, memory_order_relaxed))
		return CUDA_SUCCESS;
	SIM_WITH(&sim_capture_lock);
	if (!stream->capture)
		return legacy_breaks(stream);
	stream->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* Frees the capture, but not its graph. Call with sim_capture_lock held. */
static void capture_end(struct sim_capture *c)
{
	struct sim_capture **at;

	for (at = &captures; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	if (c->origin)
		c->origin->capture = NULL;
	for (int i = 0; i < c->members_n; i++)
		c->members[i]->capture = NULL;
	atomic_fetch_sub(&sim.captures, 1);
	free(c);
}

void sim_capture_stream_gone(CUstream stream)
{
	if (!atomic_load_explicit(&sim.captures, memory_order_relaxed))
		return;
	SIM_WITH(&sim_capture_lock);
	struct sim_capture *c = stream->capture;
	if (c && c->origin == stream) {
		CUgraph graph = c->foreign ? NULL : c->graph;

		capture_end(c);
		if (graph)
			cuGraphDestroy(graph);
	} else if (c) {
		c->invalid |= !stream->joined;
		for (int i = 0; i < c->members_n; i++)
			if (c->members[i] == stream)
				c->members[i--] = c->members[--c->members_n];
	}
}

static CUresult begin(CUstream handle, bool ptds, CUgraph graph, CUstreamCaptureMode mode)
{
	struct sim_capture *c;
	CUstream stream;
	CUresult r = CUDA_SUCCESS;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(stream->legacy, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	c = calloc(1, sizeof(*c));
	SIM_FAIL_IF(!c, CUDA_ERROR_OUT_OF_MEMORY);
	c->foreign = graph != NULL;
	c->graph = graph ? graph : sim_graph_new();
	c->origin = stream;
	c->mode = mode;
	c->thread = pthread_self();
	pthread_mutex_lock(&sim_capture_lock);
	if (stream->capture || !c->graph) {
		r = stream->capture ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		c->id = ++ids;
		c->next = captures;
		captures = c;
		stream->capture = c;
		stream->joining = ++joinings;
		atomic_fetch_add(&sim.captures, 1);
	}
	pthread_mutex_unlock(&sim_capture_lock);
	if (r != CUDA_SUCCESS) {
		if (!c->foreign && c->graph)
			cuGraphDestroy(c->graph);
		free(c);
	}
	return r;
}

SIM_TWINS(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
	  return begin(stream, ptds, NULL, mode);)

SIM_TWINS(cuStreamBeginCaptureToGraph, _ptsz,
	  (CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
	   const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode),
	  return sim_is_graph(graph) ? begin(stream, ptds, graph, mode) : CUDA_ERROR_INVALID_VALUE;)

static CUresult end(CUstream handle, bool ptds, CUgraph *ret_graph)
{
	CUstream stream;
	CUresult r = CUDA_SUCCESS;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(!ret_graph, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH(&sim_capture_lock);
	struct sim_capture *c = stream->capture;
	SIM_FAIL_IF(!c, CUDA_ERROR_ILLEGAL_STATE);
	SIM_FAIL_IF(c->origin != stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	SIM_FAIL_IF(c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
			    !pthread_equal(c->thread, pthread_self()),
		    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	if (c->invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	for (int i = 0; i < c->members_n && r == CUDA_SUCCESS; i++)
		if (!c->members[i]->joined)
			r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	*ret_graph = r == CUDA_SUCCESS ? c->graph : NULL;
	if (r != CUDA_SUCCESS && !c->foreign)
		cuGraphDestroy(c->graph);
	capture_end(c);
	return r;
}

SIM_TWINS(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *graph),
	  return end(stream, ptds, graph);)

static CUresult info(CUstream handle, bool ptds, CUstreamCaptureStatus *status, cuuint64_t *id,
		     CUgraph *graph)
{
	CUstream stream;
	CUresult r = CUDA_SUCCESS;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(!status, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH(&sim_capture_lock);
	const struct sim_capture *c = stream->capture;
	*status = !c           ? CU_STREAM_CAPTURE_STATUS_NONE
		  : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
			       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (id)
		*id = c ? c->id : 0;
	if (graph)
		*graph = c ? c->graph : NULL;
	/* While a blocking stream captures, a query of the legacy stream fails, but does not break the capture. */
	for (const struct sim_capture *o = captures; stream->legacy && o; o = o->next)
		if (o->origin->ctx == stream->ctx && !(o->origin->flags & CU_STREAM_NON_BLOCKING))
			r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	return r;
}

SIM_TWINS(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus *status),
	  return info(stream, ptds, status, NULL, NULL);)

SIM_TWINS(cuStreamGetCaptureInfo_v2, _ptsz,
	  (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	   const CUgraphNode **nodes, size_t *count),
	  if (nodes) *nodes = NULL;
	  if (count) *count = 0; return info(stream, ptds, status, id, graph);)

SIM_TWINS(cuStreamGetCaptureInfo_v3, _ptsz,
	  (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	   const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count),
	  if (nodes) *nodes = NULL;
	  if (edges) *edges = NULL; if (count) *count = 0;
	  return info(stream, ptds, status, id, graph);)
