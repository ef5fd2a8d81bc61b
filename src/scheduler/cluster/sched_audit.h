/*
 * allot-scheduler's audit log (setting audit_log; allot-audit(5)): evicted pods, victims named for preemption, and rejected
 * bindings. If the log is off, its pointer is NULL, which all functions accept. Main thread only.
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

/* Keeps `path`; if it is "off", *ret is NULL. A file that can't be opened is only logged. Returns 0 or -ENOMEM. */
int sched_audit_start(const char *path, struct sched_audit **ret, struct error *err);
struct sched_audit *sched_audit_stop(struct sched_audit *audit); /* returns NULL */
/* Opens the file again; call after SIGHUP. */
void sched_audit_reopen(struct sched_audit *audit);
struct sched_audit_figures sched_audit_figures(const struct sched_audit *audit);

struct sched_audit_pod {
	const char *pod_namespace, *pod, *uid, *node;
};

/* Records an eviction. `refused` says why the eviction failed; NULL if it succeeded. */
void sched_audit_evict(struct sched_audit *audit, const struct sched_audit_pod *of,
		       const char *reason, const char *refused);
/* Records a preempt call and the victims in its answer. Records nothing if there are no victims. */
void sched_audit_preempt(struct sched_audit *audit, const struct model *model, const json_t *args,
			 const json_t *answer);
void sched_audit_refuse(struct sched_audit *audit, const json_t *args, const struct error *err);

/*
 * Call when a binding begins. *done and *data become a function, and its data, that records a failure and then calls the
 * caller's function. Changes nothing if the log is off or memory runs out. If the binding does not begin after all, free the
 * new data by sched_audit_forget().
 */
void sched_audit_bind(struct sched_audit *audit, json_t *args, bind_done *done, void **data);
void sched_audit_forget(struct sched_audit *audit, void *data);
