/* Handles the requests of `allot trace` (docs/reference/protocol.md). */
#include <errno.h>
#include <string.h>

#include "daemon/api/condition.h"
#include "daemon/api/request_handlers.h"
#include "daemon/api/session.h"
#include "daemon/export/trace/tenant_trace.h"

/* most rings (event buffers, one per traced process) in one reply; later replies bring more */
#define POLL_RINGS_MAX SESSION_MAX_FDS

static const char *const end_names[] = {
	[ARBITER_END_UNKNOWN] = "unknown", [ARBITER_END_IDLE] = "idle",
	[ARBITER_END_TURN] = "turn",       [ARBITER_END_PRIORITY] = "priority",
	[ARBITER_END_CAP] = "cap",         [ARBITER_END_PAUSED] = "paused",
	[ARBITER_END_STOPPED] = "stopped", [ARBITER_END_GANG] = "gang",
	[ARBITER_END_ALONE] = "alone",     [ARBITER_END_SLICED] = "sliced",
};

static json_t *moment_to_json(struct trace_moment m)
{
	return json_pack("{s:I, s:I}", "ticks", (json_int_t)m.ticks, "now_ns", (json_int_t)m.now_ns);
}

int request_trace(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct tenant *tenant;
	int r = session_find_own(session, request, "name", &tenant, err);
	if (r < 0)
		return r;
	if (session->trace)
		return error_set(err, EBUSY, "this connection already traces tenant '%s'",
				 tenant_trace_name(session->trace));
	r = tenant_trace_begin(tenant, session->pid, session->uid, &session->trace, err);
	if (r < 0)
		return r;
	enum trace_clock clock = tenant_trace_clock(session->trace);
	json_object_set_new(reply, "name", json_string(tenant->terms.name));
	json_object_set_new(reply, "id", json_string(tenant->terms.id));
	json_object_set_new(reply, "clock",
			    json_string(clock == TRACE_COUNTER ? "counter" : "realtime"));
	json_object_set_new(reply, "moment", moment_to_json(trace_clock_now(clock)));
	return 0;
}

/* Makes the reply's list of rings, and puts their descriptors into the session in the same order. */
static json_t *rings_to_json(struct session *session)
{
	struct trace_ring_given given;
	json_t *rings = json_array();
	while (session->fd_count < POLL_RINGS_MAX && tenant_trace_next_ring(session->trace, &given)) {
		json_array_append_new(rings, json_pack("{s:i, s:i, s:o}", "number",
						       (int)given.number, "pid", given.pid, "name",
						       json_clean_string(given.name)));
		session->fds[session->fd_count++] = given.fd;
	}
	return rings;
}

static json_t *span_to_json(const struct lease_span *s)
{
	bool is_over = s->end_ns;
	return json_pack("{s:I, s:s, s:s, s:I, s:b, s:o, s:o, s:o, s:b, s:b}", "number",
			 (json_int_t)s->number, "tenant", s->tenant, "kind",
			 s->is_free ? "free" : "lease", "begin_ns", (json_int_t)s->begin_ns,
			 "began_earlier", s->began_earlier, "end_ns",
			 is_over ? json_integer((json_int_t)s->end_ns) : json_null(), "closing_ns",
			 s->closing_ns ? json_integer((json_int_t)s->closing_ns) : json_null(),
			 "end",
			 is_over && !s->is_free ? json_string(end_names[s->end.why]) : json_null(),
			 "with_step", s->end.with_step, "expired", s->end.expired);
}

static json_t *leases_to_json(struct arbitration *a, uint64_t *since, uint64_t now_ns,
			      uint64_t *ret_lost)
{
	struct lease_span spans[LEASE_SPANS_MAX];
	uint64_t before = *since;
	size_t count = arbitration_spans(a, before, now_ns, spans, since);
	*ret_lost = lease_spans_lost(before, *since, spans, count);
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, span_to_json(&spans[i]));
	return list;
}

static json_t *device_to_json(struct tenant *t, unsigned i, const struct lessee_figures *f,
			      json_t *leases, uint64_t lost)
{
	struct tenant_usage usage = tenant_usage(t, i);
	return json_pack("{s:i, s:I, s:I, s:f, s:I, s:I, s:o, s:I}", "index",
			 t->terms.device[i].card->index, "memory_quota_bytes",
			 (json_int_t)t->terms.device[i].promise.quota_bytes, "memory_used_bytes",
			 (json_int_t)usage.used_bytes, "got_1s_pct", f->got_1s_pct, "leases_given",
			 (json_int_t)f->account.leases, "denied", (json_int_t)usage.denied,
			 "leases", leases, "leases_lost", (json_int_t)lost);
}

static json_t *untraced_to_json(const struct tenant_trace *trace, const struct tenant *t)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < t->slot_limit; i++)
		if (t->process[i] && !tenant_trace_has(trace, t->process[i]->pid))
			json_array_append_new(list, json_integer(t->process[i]->pid));
	return list;
}

int request_trace_poll(struct session *session, const json_t *request, json_t *reply,
		       struct error *err)
{
	struct tenant_trace *trace = session->trace;
	if (!trace)
		return error_set(err, EINVAL,
				 "this connection records no trace: send \"trace\" first");
	struct tenant *t = tenant_trace_of(trace);
	struct trace_moment moment = trace_clock_now(tenant_trace_clock(trace));
	json_object_set_new(reply, "moment", moment_to_json(moment));
	json_object_set_new(reply, "rings", rings_to_json(session));
	json_object_set_new(reply, "ended", json_boolean(!t));
	if (!t)
		return 0;
	struct lessee_figures figures[REGION_MAX_DEVICES];
	json_t *devices = json_array();
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		uint64_t lost;
		json_t *leases = leases_to_json(t->terms.device[i].card->arbitration,
						tenant_trace_spans_sent(trace, i), moment.now_ns,
						&lost);
		figures[i] = lessee_figures(t->device[i].lessee);
		json_array_append_new(devices, device_to_json(t, i, &figures[i], leases, lost));
	}
	json_object_set_new(reply, "devices", devices);
	json_object_set_new(reply, "state",
			    json_string(tenant_condition_name(tenant_condition(t, figures))));
	json_object_set_new(reply, "untraced", untraced_to_json(trace, t));
	return 0;
}

/* Makes the processes stop recording. The caller can still read the events in the rings that it got by trace_poll. */
int request_trace_end(struct session *session, const json_t *request, json_t *reply,
		      struct error *err)
{
	session->trace = tenant_trace_end(session->trace);
	return 0;
}
