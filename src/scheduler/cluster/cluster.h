/*
 * Connects allot-scheduler to the cluster: API client, model and feed, binder and leader election, all on the main thread's
 * loop. A replica that does not lead keeps its model current, but binds nothing.
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
	/* "in-cluster", or a kubeconfig's path. No string here is copied. */
	const char *kube_api;
	const char *component; /* source of the events; if NULL, allot-scheduler */
	struct model_terms model;
	uint64_t bind_limit_ns; /* if 0, BIND_LIMIT_NS */
	uint64_t gang_wait_ns;  /* longest wait of a binding for its gang (gather_gang.h) */
	int64_t lock_expiry_s;  /* if 0, NODE_LOCK_EXPIRY_S */
	/* how long an opportunistic pod may lack compute before its eviction (evictor.h); 0: for ever */
	uint64_t opportunistic_patience_ns;
	bool has_filter_events;    /* make events of filter results (recorder.h) */
	struct sched_audit *audit; /* NULL if off; must outlive the cluster */
	/* the Lease for leader election; NULL: there is no other replica, and this one always leads */
	const char *lease_namespace, *lease_name;
	/* the Lease of the kube-schedulers in the replicas' pods (kube_lease.h); NULL if there is none */
	const char *kube_lease_namespace, *kube_lease_name;
	/* called when the work of cluster_end() is done, perhaps after it returned; may be NULL */
	void (*ended)(void *data);
	void *data;
};

/* Starts without waiting for the API server. Fails if no request can be made at all: a bad kubeconfig, or no libcurl. */
int cluster_start(const struct cluster_terms *terms, struct cluster **ret, struct error *err);
/* Drops all work without calling any callback. NULL is allowed; returns NULL. */
struct cluster *cluster_stop(struct cluster *cluster);
/* Cancels bindings and releases the lease, so that another replica can lead at once. Then calls `ended`, perhaps later. */
void cluster_end(struct cluster *cluster);

struct kube_client *cluster_client(struct cluster *cluster);
struct model *cluster_model(struct cluster *cluster);
/* Returns 0 if nodes, pods and quotas have each been listed completely at least once, else -EAGAIN. */
int cluster_check_ready(const struct cluster *cluster, struct error *err);
/* Returns 0 if this replica may bind; -EAGAIN if it does not lead, or as cluster_check_ready(). err says why. */
int cluster_check_leads(const struct cluster *cluster, struct error *err);

/* Reports the result of a filter call as events of the pod (recorder.h). */
void cluster_record_filter(struct cluster *cluster, struct filter_answer *answer);

/*
 * For the extender's verb bind. Returns 0 if the binding has begun; `done` is then called once, later (bind.h). -EALREADY: the
 * pod is being bound already. Other errors are as by cluster_check_leads(), extender_decide() and gather_bind().
 */
int cluster_bind(struct cluster *cluster, const json_t *args, bind_done done, void *data,
		 struct error *err);

bool cluster_bind_get_status(const struct cluster *cluster, const char *uid,
			     struct bind_status *ret);
struct recorder_counts cluster_recorder_counts(const struct cluster *cluster);
struct evictor_counts cluster_evictor_counts(const struct cluster *cluster);
bool cluster_leads(const struct cluster *cluster);
/* True if this replica leads and the leading kube-scheduler calls it. Only then does its model have all reservations. */
bool cluster_is_serving(const struct cluster *cluster);
