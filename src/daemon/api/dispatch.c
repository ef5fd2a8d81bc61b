#include "daemon/api/dispatch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/api/audit/audit.h"
#include "daemon/api/request_handlers.h"
#include "daemon/api/session.h"
#include "daemon/state/node/node.h"

#define PROTOCOL_VERSION 1

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
				 "version %" PRId64
				 ": this daemon speaks version %d: use a client of that version",
				 version, PROTOCOL_VERSION);
	r = json_read_string(request, "op", &op, err);
	if (r <= 0)
		return r < 0 ? r : error_set(err, EINVAL, "op: missing");
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (!strcmp(op, requests[i].op))
			return requests[i].handle(session, request, reply, err);
	return error_set(err, EOPNOTSUPP,
			 "op '%.40s': unknown operation: use a client of the daemon's version", op);
}

struct audit_request {
	const char *op; /* NULL: the request is not recorded */
	char id[TENANT_ID_MAX];
	json_t *old;  /* the tenant's terms before the request; NULL if there was no tenant */
	json_t *what; /* members of the audit line that are known before the request is handled */
};

/* The requests that change something, and which of their members the audit line gets. */
static const struct {
	const char *op;
	const char *members[3];
} audited[] = {
	{ "create", { NULL } },
	{ "set", { NULL } },
	{ "pause", { "swap_out" } },
	{ "resume", { NULL } },
	{ "unqueue", { NULL } },
	{ "remove", { NULL } },
	{ "claim", { NULL } },
	{ "release", { "force" } },
	{ "cordon", { "uuid", "index", "cordoned" } },
};

/* Copies a text, an integer or a boolean into the audit line. Invalid UTF-8 is replaced; other types are ignored. */
static void add_member(json_t *what, const char *key, const json_t *value)
{
	if (json_is_string(value))
		json_object_set_new(what, key, json_clean_string(json_string_value(value)));
	else if (json_is_integer(value) || json_is_boolean(value))
		json_object_set(what, key, (json_t *)value);
}

static const char *const *members_of(const char *op, const char **ret_op)
{
	for (size_t i = 0; op && i < sizeof(audited) / sizeof(audited[0]); i++)
		if (!strcmp(op, audited[i].op)) {
			*ret_op = audited[i].op;
			return audited[i].members;
		}
	return NULL;
}

static void begin_audit(struct session *session, const json_t *request, struct audit_request *ret)
{
	struct node *node = session->node;
	const struct audit_actor actor = {
		.by = session->is_page ? AUDIT_BY_PAGE : AUDIT_BY_SOCKET,
		.uid = session->uid,
		.pid = session->pid,
	};
	*ret = (struct audit_request){ 0 };
	if (!node->audit)
		return;
	audit_set_actor(node->audit, &actor);
	const char *const *members = members_of(json_string_value(json_object_get(request, "op")),
						&ret->op);
	/* With "poll", a request only asks for the progress of an earlier pause or resume, so it is not recorded. */
	if (!members || json_is_true(json_object_get(request, "poll"))) {
		ret->op = NULL;
		return;
	}
	const json_t *name = json_object_get(request, "name");
	const struct tenant *t = json_is_string(name)
					 ? node_find_tenant(node, json_string_value(name))
					 : NULL;
	if (t) {
		strcpy(ret->id, t->terms.id);
		ret->old = audit_terms(node->audit, t);
		ret->what = audit_about(node->audit, t);
	} else {
		ret->what = json_object();
		add_member(ret->what, "tenant", name);
	}
	for (unsigned i = 0; i < 3 && members[i]; i++)
		add_member(ret->what, members[i], json_object_get(request, members[i]));
}

static void add_outcome(struct node *node, struct audit_request *of, const json_t *reply)
{
	const char *id = json_string_value(json_object_get(reply, "id"));
	const struct tenant *t = node_find_tenant(node, id ? id : of->id);
	if (!t && of->old)
		return; /* the tenant has ended */
	cleanup_json json_t *now = t ? audit_terms(node->audit, t) : NULL;
	cleanup_json json_t *about = t ? audit_about(node->audit, t) : NULL;
	if (about)
		json_object_update(of->what, about);
	audit_add_change(of->what, of->old, now);
}

static void end_audit(struct session *session, struct audit_request *of, int r,
		      const struct error *err, const json_t *reply)
{
	struct node *node = session->node;
	if (of->op && r >= 0) {
		add_outcome(node, of, reply);
		audit_write(node->audit, of->op, json_incref(of->what));
	} else if (of->op && r == -EPERM) {
		json_object_set_new(of->what, "refused", json_clean_string(err->text));
		audit_write(node->audit, of->op, json_incref(of->what));
	}
	json_decref(of->old);
	json_decref(of->what);
	audit_set_actor(node->audit, NULL);
}

static int dispatch_audited(struct session *session, const json_t *request, json_t *reply,
			    struct error *err)
{
	struct audit_request about;
	begin_audit(session, request, &about);
	int r = dispatch(session, request, reply, err);
	end_audit(session, &about, r, err, reply);
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
	/* json_pack() fails if err->text is not UTF-8: the text may quote the request, and may be cut within a character. */
	return reply ? reply
		     : json_pack("{s:b, s:s, s:i}", "ok", 0, "error", "failed", "errno", err->code);
}

static bool is_list(const json_t *request)
{
	const char *op = json_string_value(json_object_get(request, "op"));
	return op && !strcmp(op, "list") &&
	       json_integer_value(json_object_get(request, "version")) == PROTOCOL_VERSION;
}

/*
 * Returns the last reply to "list" if the daemon began to make that reply after this request came, else NULL. So clients that
 * ask at the same time share one list, which takes milliseconds to make if there are many tenants.
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
