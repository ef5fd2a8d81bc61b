/*
 * What allot-scheduler knows of the cluster, and does to it: the client of the API, the model and what feeds it, the binder,
 * and whether we lead, on the main thread's loop. A replica that does not lead knows the same, and binds nothing.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"
#include "scheduler/bind/bind.h"
#include "scheduler/cluster/evictor.h"
#include "scheduler/cluster/feed.h"
#include "scheduler/cluster/recorder.h"
#include "scheduler/model/model.h"

struct cluster;
struct sched_audit;

struct cluster_terms {
	struct loop *loop;
	const char *kube_api; /* "in-cluster", or a kubeconfig's path. Texts are kept, not copied */
	const char *component; /* whose events they are; NULL: allot-scheduler */
	struct model_terms model;
	uint64_t bind_limit_ns;                   /* 0: BIND_LIMIT_NS */
	uint64_t gang_wait_ns;                    /* gather.h */
	int64_t lock_expiry_s;                    /* 0: NODE_LOCK_EXPIRY_S */
	uint64_t opportunistic_patience_ns;       /* evictor.h; 0: nobody is evicted */
	bool has_filter_events;                   /* recorder.h */
	struct sched_audit *audit;                /* NULL: off; longer than the cluster */
	const char *lease_namespace, *lease_name; /* NULL: there is no other replica: we lead */
	const char *kube_lease_namespace, *kube_lease_name; /* kube_lease.h; NULL: there is none */
	/* After cluster_end(); NULL: not wanted. */
	void (*ended)(void *data);
	void *data;
};

/* Whether the server answers is found out later. -errno where it can't be asked at all: the kubeconfig, libcurl. */
int cluster_start(const struct cluster_terms *terms, struct cluster **ret, struct error *err);
/* What is under way is left as it is, and nobody is told of it any more. NULL is fine; returns NULL. */
struct cluster *cluster_stop(struct cluster *cluster);
/* An orderly end: bindings are cancelled, the lease is let go, so that another leads at once; `ended` after that. */
void cluster_end(struct cluster *cluster);

struct kube_client *cluster_client(struct cluster *cluster);
/* For the extender's verbs, filter, prioritize and preempt. */
struct model *cluster_model(struct cluster *cluster);
/* May be asked: -EAGAIN until all lists have been complete once. */
int cluster_check_ready(const struct cluster *cluster, struct error *err);
/* May bind: -EAGAIN as well where another leads, by its name. */
int cluster_check_leads(const struct cluster *cluster, struct error *err);

/* What filter answered: the pod is told by events (recorder.h). */
void cluster_filtered(struct cluster *cluster, struct filter_answer *answer);

/*
 * The extender's verb bind. 0: it has begun, and `done` is called once, later (bind.h); else it is not, with the reason:
 * those of cluster_check_leads() and extender_decide(), and -EALREADY.
 */
int cluster_bind(struct cluster *cluster, const json_t *args, bind_done done, void *data,
		 struct error *err);

/* As bind_look(). */
bool cluster_bind_look(const struct cluster *cluster, const char *uid, struct bind_view *ret);
struct recorder_counts cluster_recorder_counts(const struct cluster *cluster);
struct evictor_counts cluster_evictor_counts(const struct cluster *cluster);
bool cluster_leads(const struct cluster *cluster);
/* This replica leads, and the leading kube-scheduler asks it: no other replica knows more reservations. */
bool cluster_is_asked(const struct cluster *cluster);
