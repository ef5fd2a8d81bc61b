/*
 * allot-scheduler's audit log (setting audit_log; allot-audit(5) describes the lines): evicted pods, victims named for
 * preemption, and rejected bindings. NULL stands for a log that is off; all functions accept it. Main thread only.
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

/*
 * Opens the log. If `path` is "off", *ret is NULL. A failure to open the file is reported in the program's log, and is no error.
 * The path is kept, not copied. Returns 0 or -ENOMEM.
 */
int sched_audit_start(const char *path, struct sched_audit **ret, struct error *err);
struct sched_audit *sched_audit_stop(struct sched_audit *audit); /* returns NULL */
/* Opens the file again; call after SIGHUP. */
void sched_audit_reopen(struct sched_audit *audit);
struct sched_audit_figures sched_audit_figures(const struct sched_audit *audit);

struct sched_audit_pod {
	const char *pod_namespace, *pod, *uid, *node;
};

/* Records an eviction. `refused` is NULL if the pod was evicted, otherwise the reason why it was not. */
void sched_audit_evict(struct sched_audit *audit, const struct sched_audit_pod *of,
		       const char *reason, const char *refused);
/* Records a preempt call and its answer. An answer without victims is not recorded. */
void sched_audit_preempt(struct sched_audit *audit, const struct model *model, const json_t *args,
			 const json_t *answer);
/* Records a bind call that was rejected, with the reason. */
void sched_audit_refuse(struct sched_audit *audit, const json_t *args, const struct error *err);

/*
 * Call when a binding begins. Replaces *done and *data, so that the log learns of a failure before the original callback is
 * called. Leaves them unchanged if the log is off or memory runs out. If the binding does not begin after all, call
 * sched_audit_forget() with the new data to free it.
 */
void sched_audit_bind(struct sched_audit *audit, json_t *args, bind_done *done, void **data);
void sched_audit_forget(struct sched_audit *audit, void *data);
