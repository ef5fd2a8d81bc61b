#include "daemon/api/audit_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/state/node/node.h"

/* One row a request that changes something, and what of it stands in the line beside the tenant. */
static const struct {
	const char *op;
	const char *members[3];
} rows[] = {
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

/* What has control characters or is no text is no name. */
static void add_member(json_t *what, const char *key, const json_t *value)
{
	if (json_is_string(value))
		json_object_set_new(what, key, json_clean_string(json_string_value(value)));
	else if (json_is_integer(value) || json_is_boolean(value))
		json_object_set(what, key, (json_t *)value);
}

static const char *const *members_of(const char *op, const char **ret_op)
{
	for (size_t i = 0; op && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(op, rows[i].op)) {
			*ret_op = rows[i].op;
			return rows[i].members;
		}
	return NULL;
}

void audit_request_begin(struct session *session, const json_t *request, struct audit_request *ret)
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
	/* What a move has come to is a question. */
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
		return; /* it has ended, and its own line says so */
	cleanup_json json_t *now = t ? audit_terms(node->audit, t) : NULL;
	cleanup_json json_t *about = t ? audit_about(node->audit, t) : NULL;
	if (about)
		json_object_update(of->what, about);
	audit_add_change(of->what, of->old, now);
}

void audit_request_end(struct session *session, struct audit_request *of, int r,
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
