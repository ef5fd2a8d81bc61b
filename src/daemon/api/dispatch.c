#include "daemon/api/dispatch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/api/audit_request.h"
#include "daemon/api/request_handlers.h"

#define PROTOCOL_VERSION 1

/* One row a request. */
static const struct {
	const char *op;
	int (*handle)(struct session *, const json_t *, json_t *, struct error *);
} requests[] = {
	{ "hello", request_hello },         { "create", request_create },
	{ "attach", request_attach },       { "set", request_set },
	{ "pause", request_pause },         { "resume", request_resume },
	{ "list", request_list },           { "remove", request_remove },
	{ "unqueue", request_unqueue },     { "tasks", request_tasks },
	{ "topology", request_topology },   { "claim", request_claim },
	{ "release", request_release },     { "claims", request_claims },
	{ "injection", request_injection }, { "cordon", request_cordon },
	{ "trace", request_trace },         { "trace_poll", request_trace_poll },
	{ "trace_end", request_trace_end }, { "space", request_space },
};

static int dispatch(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	const char *op = NULL;
	int64_t version = 0;
	if (!json_is_object(request))
		return error_set(err, EINVAL, "a request must be one JSON object on a line");
	int r = json_read_int(request, "version", INT64_MIN, INT64_MAX, &version, err);
	if (r < 0)
		return r;
	if (r == 0)
		return error_set(err, EINVAL, "version: missing: must be %d", PROTOCOL_VERSION);
	if (version != PROTOCOL_VERSION)
		return error_set(err, EPROTONOSUPPORT,
				 "version %" PRId64 " is not understood: this daemon speaks %d",
				 version, PROTOCOL_VERSION);
	r = json_read_string(request, "op", &op, err);
	if (r <= 0)
		return r < 0 ? r : error_set(err, EINVAL, "op: missing");
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (!strcmp(op, requests[i].op))
			return requests[i].handle(session, request, reply, err);
	return error_set(err, EOPNOTSUPP, "op '%.40s': this daemon does not know it", op);
}

static int dispatch_audited(struct session *session, const json_t *request, json_t *reply,
			    struct error *err)
{
	struct audit_request audited;
	audit_request_begin(session, request, &audited);
	int r = dispatch(session, request, reply, err);
	audit_request_end(session, &audited, r, err, reply);
	return r;
}

static char *to_line(json_t *reply)
{
	char *text = json_dumps(reply, JSON_COMPACT);
	char *line = text ? realloc(text, strlen(text) + 2) : NULL;
	if (!line) {
		free(text);
		return NULL;
	}
	strcat(line, "\n");
	return line;
}

static json_t *failure(const struct error *err)
{
	json_t *reply = json_pack("{s:b, s:s, s:i}", "ok", 0, "error", err->text, "errno",
				  err->code);
	/* Text that quotes the request may have been cut inside a character: not UTF-8 any more. */
	return reply ? reply
		     : json_pack("{s:b, s:s, s:i}", "ok", 0, "error", "failed", "errno", err->code);
}

/* ---- the list ---- */

static bool is_list(const json_t *request)
{
	const char *op = json_string_value(json_object_get(request, "op"));
	return op && !strcmp(op, "list") &&
	       json_integer_value(json_object_get(request, "version")) == PROTOCOL_VERSION;
}

/*
 * A list of many tenants takes milliseconds to make. So all who had asked when one was begun are told that one:
 * connections that ask without end cost one list a round, not one each.
 */
static const char *find_list(const struct session *session)
{
	const struct node *node = session->node;
	return session->came_ns && session->came_ns <= node->list_ns ? node->list_text : NULL;
}

static void keep_list(struct node *node, const char *text, uint64_t begun_ns)
{
	free(node->list_text);
	node->list_text = strdup(text);
	node->list_ns = begun_ns;
}

char *dispatch_request(struct session *session, const char *line, size_t length)
{
	struct error err = { 0 };
	json_error_t where;
	cleanup_json json_t *reply = json_pack("{s:b}", "ok", 1);
	cleanup_json json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
	bool wants_list = is_list(request);
	uint64_t begun_ns = clock_now_ns();
	int r;
	if (!reply)
		return NULL;
	if (wants_list && find_list(session)) {
		session->node->requests++;
		return strdup(find_list(session));
	}
	if (!request)
		r = error_set(&err, EINVAL, "not JSON: column %d: %s", where.column, where.text);
	else
		r = dispatch_audited(session, request, reply, &err);
	session->node->requests++;
	session->node->refused += r < 0;
	if (r < 0) {
		json_decref(reply);
		reply = failure(&err);
	}
	char *text = reply ? to_line(reply) : NULL;
	if (wants_list && text)
		keep_list(session->node, text, begun_ns);
	return text;
}
