#include "daemon/api/audit/audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/audit/audit_line.h"
#include "daemon/state/elastic_terms.h"
#include "daemon/state/node/node.h"
#include "daemon/state/tenant.h"
#include "daemon/util/json.h"
#include "daemon/util/procfs.h"

struct audit {
	struct audit_file file;
	struct audit_actor actor;
};

static json_t *command_of(int pid)
{
	char name[32];
	if (pid <= 0 || procfs_read(pid, "comm", name, sizeof(name)) < 0)
		return json_null();
	name[strcspn(name, "\n")] = '\0';
	return json_clean_string(name);
}

static json_t *actor_to_json(const struct audit_actor *a)
{
	switch (a->by) {
	case AUDIT_BY_SOCKET:
		return json_pack("{s:s, s:I, s:i, s:o}", "kind", "socket", "uid",
				 (json_int_t)a->uid, "pid", a->pid, "command", command_of(a->pid));
	case AUDIT_BY_KUBERNETES:
		return json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "kubernetes", "object", "Pod",
				 "namespace", a->pod_namespace, "name", a->pod, "uid", a->pod_uid);
	case AUDIT_BY_PAGE: return json_pack("{s:s}", "kind", "page");
	case AUDIT_BY_KUBELET: return json_pack("{s:s}", "kind", "kubelet");
	case AUDIT_BY_DAEMON: break;
	}
	return json_pack("{s:s}", "kind", "daemon");
}

void audit_write(struct audit *audit, const char *event, json_t *what)
{
	if (audit)
		audit_line_write(&audit->file, "daemon", event, actor_to_json(&audit->actor), what);
	else
		json_decref(what);
}

void audit_set_actor(struct audit *audit, const struct audit_actor *actor)
{
	if (audit)
		audit->actor = actor ? *actor : (struct audit_actor){ .by = AUDIT_BY_DAEMON };
}

bool audit_set_actor_if_none(struct audit *audit, const struct audit_actor *actor)
{
	if (!audit || audit->actor.by != AUDIT_BY_DAEMON)
		return false;
	audit->actor = *actor;
	return true;
}

static json_t *device_to_json(const struct tenant_device_terms *d)
{
	json_t *memory = d->promise.memory_given ? json_integer((json_int_t)d->promise.quota_bytes)
						 : json_null();
	return json_pack("{s:s, s:o, s:f, s:f}", "uuid", d->card->info.uuid_text,
			 "memory_quota_bytes", memory, "cores_pct", d->promise.cores_pct,
			 "cores_limit_pct", d->promise.limit_pct);
}

json_t *audit_terms(const struct audit *audit, const struct tenant *tenant)
{
	const struct tenant_terms *t = &tenant->terms;
	if (!audit)
		return NULL;
	json_t *devices = json_array();
	for (unsigned i = 0; i < t->device_count; i++)
		json_array_append_new(devices, device_to_json(&t->device[i]));
	return json_pack("{s:o, s:i, s:s, s:o, s:s, s:b, s:b}", "devices", devices, "priority",
			 t->priority, "on_full", on_full_name(t->on_full), "elastic",
			 elastic_choice_to_json(t->elastic), "on_violation",
			 on_violation_name(t->on_violation), "paused", t->paused, "swapped_out",
			 t->swapped_out);
}

static json_t *differing(const json_t *from, const json_t *beside)
{
	json_t *result = json_object(), *value;
	const char *key;
	json_object_foreach((json_t *)from, key,
			    value) if (!json_equal(value, json_object_get(beside, key)))
		json_object_set(result, key, value);
	return result;
}

void audit_add_change(json_t *what, const json_t *old, const json_t *now)
{
	if (old)
		json_object_set_new(what, "old", differing(old, now));
	if (now)
		json_object_set_new(what, "new", differing(now, old));
}

json_t *audit_about(const struct audit *audit, const struct tenant *tenant)
{
	if (!audit)
		return NULL;
	json_t *about = json_pack("{s:s, s:s, s:I}", "tenant", tenant->terms.name, "id",
				  tenant->terms.id, "uid", (json_int_t)tenant->terms.uid);
	if (about && *tenant->terms.claim.key)
		json_object_set_new(about, "claim", json_string(tenant->terms.claim.key));
	return about;
}

int audit_start(struct node *node, struct audit **ret, struct error *err)
{
	const char *path = node->config.audit_log;
	if (!strcmp(path, "off")) {
		*ret = NULL;
		return 0;
	}
	struct audit *audit = calloc(1, sizeof(*audit));
	if (!audit)
		return error_set_errno(err, ENOMEM, "audit_log");
	audit_file_open(&audit->file, path, "allot_audit_lines_lost_total");
	audit_write(audit, "start",
		    json_pack("{s:s, s:i, s:s}", "daemon", "allotd " ALLOT_VERSION, "pid",
			      (int)getpid(), "run_dir", node->run_dir));
	*ret = audit;
	return 0;
}

struct audit *audit_stop(struct audit *audit)
{
	if (!audit)
		return NULL;
	audit_set_actor(audit, NULL);
	audit_write(audit, "stop", json_object());
	audit_file_close(&audit->file);
	free(audit);
	return NULL;
}

void audit_reopen(struct audit *audit)
{
	if (audit)
		audit_file_reopen(&audit->file);
}

struct audit_figures audit_figures(const struct audit *audit)
{
	return audit ? (struct audit_figures){ audit->file.lines, audit->file.lost }
		     : (struct audit_figures){ 0, 0 };
}

void audit_tenant_ended(struct tenant *tenant, const char *why)
{
	struct audit *audit = tenant->node->audit;
	json_t *what = audit_about(audit, tenant);
	if (what)
		json_object_set_new(what, "reason", json_clean_string(why));
	audit_write(audit, "end", what);
}
