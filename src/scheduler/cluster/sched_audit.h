/*
 * allot-scheduler's audit log (setting audit_log; its lines are allot-audit(5)'s): which pods it sent away, whom it named as
 * victims of others, and which bindings it refused. NULL is one that is off: every function takes it. Main thread only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/bind/bind.h"

struct sched_audit;
struct model;

struct sched_audit_figures {
	uint64_t lines, lost;
};

/* `path`: "off": *ret is NULL. A file that can't be opened is said, and is no failure. The path is kept. -ENOMEM. */
int sched_audit_start(const char *path, struct sched_audit **ret, struct error *err);
struct sched_audit *sched_audit_stop(struct sched_audit *audit); /* returns NULL */
/* After SIGHUP. */
void sched_audit_reopen(struct sched_audit *audit);
struct sched_audit_figures sched_audit_figures(const struct sched_audit *audit);

struct sched_audit_pod {
	const char *pod_namespace, *pod, *uid, *node;
};

/* The pod was evicted; `refused`: it was not, and why; NULL: it was. */
void sched_audit_evict(struct sched_audit *audit, const struct sched_audit_pod *of,
		       const char *reason, const char *refused);
/* The verb preempt: what it was asked, and its answer. One without victims is not written down. */
void sched_audit_preempt(struct sched_audit *audit, const struct model *model, const json_t *args,
			 const json_t *answer);
/* The verb bind: what it was asked, and why it is not done. */
void sched_audit_refuse(struct sched_audit *audit, const json_t *args, const struct error *err);

/*
 * A binding that begins: *done and *data become those by which the log hears of its failure, before whoever's they were. Off, or
 * without memory, they stay. sched_audit_forget(): it did not begin: data that it has become is given up.
 */
void sched_audit_bind(struct sched_audit *audit, json_t *args, bind_done *done, void **data);
void sched_audit_forget(struct sched_audit *audit, void *data);
