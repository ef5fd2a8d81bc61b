/*
 * allot-scheduler's view of the cluster and its actions there: the API client, the model with its feed, the binder, and the
 * leader election. Everything runs on the main thread's loop. A replica that does not lead keeps its model up to date too,
 * but binds nothing.
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
	/* "in-cluster", or the path of a kubeconfig; all strings are kept, not copied */
	const char *kube_api;
	const char *component; /* source of the events; if NULL, allot-scheduler */
	struct model_terms model;
	uint64_t bind_limit_ns; /* if 0, BIND_LIMIT_NS */
	uint64_t gang_wait_ns;  /* gather_gang.h */
	int64_t lock_expiry_s;  /* if 0, NODE_LOCK_EXPIRY_S */
	/* evictor.h; if 0, no pod is evicted for lack of compute */
	uint64_t opportunistic_patience_ns;
	bool has_filter_events;    /* recorder.h */
	struct sched_audit *audit; /* NULL if off; must outlive the cluster */
	/* names of the Lease for leader election; NULL if there is no other replica, and this one always leads */
	const char *lease_namespace, *lease_name;
	/* kube_lease.h; NULL if there is none */
	const char *kube_lease_namespace, *kube_lease_name;
	/* This is called at the end of cluster_end(). It may be NULL. */
	void (*ended)(void *data);
	void *data;
};

/*
 * Starts without waiting for the API server. Returns a negative error if requests cannot be made at all, because of the
 * kubeconfig or libcurl.
 */
int cluster_start(const struct cluster_terms *terms, struct cluster **ret, struct error *err);
/* Abandons everything under way without calling anyone back. `cluster` may be NULL; returns NULL. */
struct cluster *cluster_stop(struct cluster *cluster);
/* Ends in order: cancels bindings, releases the lease so that another replica leads at once, then calls `ended`. */
void cluster_end(struct cluster *cluster);

struct kube_client *cluster_client(struct cluster *cluster);
/* Returns the model, for the extender's verbs filter, prioritize and preempt. */
struct model *cluster_model(struct cluster *cluster);
/* Returns 0 if the model can answer, or -EAGAIN until all lists have been complete once. */
int cluster_check_ready(const struct cluster *cluster, struct error *err);
/*
 * Returns 0 if this replica may bind. Returns -EAGAIN if the lists are incomplete or another replica leads; err names that
 * replica.
 */
int cluster_check_leads(const struct cluster *cluster, struct error *err);

/* Reports the result of a filter call to the pod by events (recorder.h). */
void cluster_filtered(struct cluster *cluster, struct filter_answer *answer);

/*
 * Binds the pod, for the extender's verb bind. If the binding has begun, returns 0, and calls `done` once, later (bind.h).
 * Otherwise returns an error of cluster_check_leads() or extender_decide(), or -EALREADY.
 */
int cluster_bind(struct cluster *cluster, const json_t *args, bind_done done, void *data,
		 struct error *err);

/* Returns the result of bind_look() for the cluster's binder. */
bool cluster_bind_look(const struct cluster *cluster, const char *uid, struct bind_view *ret);
struct recorder_counts cluster_recorder_counts(const struct cluster *cluster);
struct evictor_counts cluster_evictor_counts(const struct cluster *cluster);
bool cluster_leads(const struct cluster *cluster);
/*
 * Returns true if this replica leads and the leading kube-scheduler calls it. Then this replica knows all reservations.
 */
bool cluster_is_asked(const struct cluster *cluster);
