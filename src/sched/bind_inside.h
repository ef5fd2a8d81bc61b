/* Between bind_job.c, which makes a binding's calls, and bind_steps.c, which says what comes of what was read. */
#ifndef ALLOT_SCHED_BIND_INSIDE_H
#define ALLOT_SCHED_BIND_INSIDE_H

#include "sched/bind_job.h"

/* Each is the last that is done with a job for now: job_finish() and job_fail() may free it. */
void job_go(struct bind_job *job, enum bind_step step);
/* `err` NULL: the pod is bound. */
void job_finish(struct bind_job *job, const struct error *err);
/* As job_finish(), after what was written is undone. */
void job_fail(struct bind_job *job, const struct error *why);
/* Until the step is done again: longer each time, within these bounds. */
void job_rest(struct bind_job *job, uint64_t at_least_ns, uint64_t most_ns);

/* What was read: the pod, the node, the pod that its lock names (NULL: it is gone); and, to undo it, the first two again. */
void bind_pod_came(struct bind_job *job, json_t *object);
void bind_node_came(struct bind_job *job, const json_t *object);
void bind_holder_came(struct bind_job *job, json_t *object);
void bind_failed_pod_came(struct bind_job *job, json_t *object);
void bind_failed_node_came(struct bind_job *job, const json_t *object);

#endif
