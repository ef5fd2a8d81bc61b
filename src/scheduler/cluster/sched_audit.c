#include "scheduler/cluster/sched_audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/audit/audit_line.h"
#include "scheduler/explain/explain_node.h"
#include "scheduler/model/model_inside.h"

#define OWN "scheduler" /* the actor in a record: the scheduler, by its own rules */
/* the actor in a record: kube-scheduler, or another client of the extender */
#define ASKED "extender"
/* Limit of nodes in a record: kube-scheduler asks about many nodes and uses one. */
#define NODES_MOST 16
#define COUNTER "allot_scheduler_audit_lines_lost_total"

struct binding {
	LIST_ENTRY(binding) link;
	struct sched_audit *audit;
	json_t *args; /* owned */
	bind_done done;
	void *data;
};

struct sched_audit {
	struct audit_file file;
	LIST_HEAD(, binding) under_way;
};

static void write_line(struct sched_audit *audit, const char *by, const char *event, json_t *what)
{
	audit_line_write(&audit->file, OWN, event, json_pack("{s:s}", "kind", by), what);
}

void sched_audit_evict(struct sched_audit *audit, const struct sched_audit_pod *of,
		       const char *reason, const char *refused)
{
	if (!audit)
		return;
	json_t *what = json_pack("{s:s,s:s,s:s,s:s,s:o}", "namespace", of->pod_namespace, "pod",
				 of->pod, "uid", of->uid, "node", of->node, "reason",
				 explain_text(reason));
	if (what && refused)
		json_object_set_new(what, "refused", explain_text(refused));
	write_line(audit, OWN, "evict", what);
}

static void add_text(json_t *to, const char *name, const json_t *from, const char *member)
{
	json_t *text = json_object_get(from, member);
	if (json_is_string(text))
		json_object_set(to, name, text);
}

/* Shows a victim without GPUs by its uid only, because the model does not have such pods. */
static json_t *show_victim(const struct model *m, const char *uid)
{
	const struct model_pod *pod = model_find_pod(m, uid);
	json_t *one = json_object();
	if (pod) {
		json_object_set_new(one, "namespace", json_string(pod->pod_namespace));
		json_object_set_new(one, "pod", json_string(model_pod_name(pod)));
	}
	json_object_set_new(one, "uid", json_string(uid));
	return one;
}

static json_t *list_victims(const struct model *m, const json_t *pods)
{
	json_t *list = json_array(), *pod;
	size_t i;
	json_array_foreach(pods, i, pod)
	{
		const char *uid = json_string_value(json_object_get(pod, "UID"));
		if (uid)
			json_array_append_new(list, show_victim(m, uid));
	}
	return list;
}

void sched_audit_preempt(struct sched_audit *audit, const struct model *m, const json_t *args,
			 const json_t *answer)
{
	json_t *nodes = json_object_get(answer, "NodeNameToMetaVictims"), *victims;
	const json_t *meta = json_object_get(json_object_get(args, "Pod"), "metadata");
	const char *name;
	if (!audit || !json_object_size(nodes))
		return;
	json_t *what = json_object(), *shown = json_object();
	size_t more = json_object_size(nodes);
	add_text(what, "namespace", meta, "namespace");
	add_text(what, "pod", meta, "name");
	add_text(what, "uid", meta, "uid");
	json_object_foreach(nodes, name, victims)
	{
		if (json_object_size(shown) == NODES_MOST)
			break;
		json_object_set_new(shown, name, list_victims(m, json_object_get(victims, "Pods")));
		more--;
	}
	json_object_set_new(what, "victims", shown);
	if (more)
		json_object_set_new(what, "more_nodes", json_integer((json_int_t)more));
	write_line(audit, ASKED, "preempt", what);
}

void sched_audit_refuse(struct sched_audit *audit, const json_t *args, const struct error *err)
{
	if (!audit)
		return;
	json_t *what = json_object();
	add_text(what, "namespace", args, "PodNamespace");
	add_text(what, "pod", args, "PodName");
	add_text(what, "uid", args, "PodUID");
	add_text(what, "node", args, "Node");
	json_object_set_new(what, "refused", explain_text(err->text));
	write_line(audit, ASKED, "bind", what);
}

static void forget(struct binding *b)
{
	LIST_REMOVE(b, link);
	json_decref(b->args);
	free(b);
}

static void binding_done(void *data, const struct error *err)
{
	struct binding *b = data;
	bind_done done = b->done;
	void *of = b->data;
	if (err->code)
		sched_audit_refuse(b->audit, b->args, err);
	forget(b);
	done(of, err);
}

void sched_audit_bind(struct sched_audit *audit, json_t *args, bind_done *done, void **data)
{
	struct binding *b = audit ? calloc(1, sizeof(*b)) : NULL;
	if (!b)
		return;
	*b = (struct binding){
		.audit = audit, .args = json_incref(args), .done = *done, .data = *data
	};
	LIST_INSERT_HEAD(&audit->under_way, b, link);
	*done = binding_done;
	*data = b;
}

void sched_audit_forget(struct sched_audit *audit, void *data)
{
	struct binding *b = NULL;
	if (audit)
		LIST_FOREACH(b, &audit->under_way, link)
			if (b == data)
				break;
	if (b)
		forget(b);
}

int sched_audit_start(const char *path, struct sched_audit **ret, struct error *err)
{
	*ret = NULL;
	if (!strcmp(path, "off"))
		return 0;
	struct sched_audit *audit = calloc(1, sizeof(*audit));
	if (!audit)
		return error_set_errno(err, ENOMEM, "audit_log");
	LIST_INIT(&audit->under_way);
	audit_file_open(&audit->file, path, COUNTER);
	write_line(audit, OWN, "start",
		   json_pack("{s:s,s:i}", "daemon", "allot-scheduler " ALLOT_VERSION, "pid",
			     (int)getpid()));
	*ret = audit;
	return 0;
}

struct sched_audit *sched_audit_stop(struct sched_audit *audit)
{
	if (!audit)
		return NULL;
	while (!LIST_EMPTY(&audit->under_way))
		forget(LIST_FIRST(&audit->under_way));
	write_line(audit, OWN, "stop", json_object());
	audit_file_close(&audit->file);
	free(audit);
	return NULL;
}

void sched_audit_reopen(struct sched_audit *audit)
{
	if (audit)
		audit_file_reopen(&audit->file);
}

struct sched_audit_figures sched_audit_figures(const struct sched_audit *audit)
{
	return audit ? (struct sched_audit_figures){ audit->file.lines, audit->file.lost }
		     : (struct sched_audit_figures){ 0, 0 };
}
