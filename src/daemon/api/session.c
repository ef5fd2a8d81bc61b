#include "daemon/api/session.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/export/trace/tenant_trace.h"
#include "daemon/state/join/adopt.h"

int session_hold(struct session *session, struct tenant *tenant, struct error *err)
{
	for (size_t i = 0; i < session->held_count; i++)
		if (!strcmp(session->held[i], tenant->terms.id))
			return 0;
	if (session->held_count == SESSION_MAX_HELD)
		return error_set(err, ENOSPC, "a connection may hold at most %d tenants",
				 SESSION_MAX_HELD);
	strcpy(session->held[session->held_count++], tenant->terms.id);
	tenant->holders++;
	tenant->grace = false;
	adopt_forget_command(tenant);
	return 0;
}

void session_drop(struct session *session)
{
	session->trace = tenant_trace_end(session->trace);
	while (session->fd_count)
		close(session->fds[--session->fd_count]);
}

void session_end(struct session *session)
{
	session_drop(session);
	for (size_t i = 0; i < session->held_count; i++) {
		struct tenant *t;
		TAILQ_FOREACH(t, &session->node->tenants, link)
			if (!strcmp(t->terms.id, session->held[i]))
				break;
		if (t) {
			t->holders--;
			tenant_save_soon(t);
			tenant_end_if_unused(t);
		}
	}
	session->held_count = 0;
}

int session_check_tenants(const struct session *session, struct error *err)
{
	const struct tenant *t;
	unsigned count = 0;
	if (session->is_admin || session->node->is_private)
		return 0;
	TAILQ_FOREACH(t, &session->node->tenants, link)
		count += t->terms.uid == session->uid;
	return count < SESSION_USER_TENANTS
		       ? 0
		       : error_set(err, EDQUOT,
				   "uid %u has %u tenants, the most that one user may have: end one "
				   "first (allot ps lists them)",
				   (unsigned)session->uid, count);
}

int session_find_own(struct session *session, const json_t *request, const char *key,
		     struct tenant **ret, struct error *err)
{
	const char *name = NULL;
	int r = json_read_string(request, key, &name, err);
	if (r <= 0)
		return r < 0 ? r : error_set(err, EINVAL, "%s: missing", key);
	struct tenant *t = node_find_tenant(session->node, name);
	if (!t)
		return error_set(err, ENOENT, "there is no tenant '%.63s': allot ps lists them",
				 name);
	if (!session->is_admin && session->uid != t->terms.uid)
		return error_set(err, EPERM,
				 "tenant '%s' belongs to uid %u: only its owner, root and members of "
				 "group allot may change it",
				 t->terms.name, (unsigned)t->terms.uid);
	*ret = t;
	return 0;
}
