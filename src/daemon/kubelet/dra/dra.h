/*
 * The DRA driver gpu.allot.dev (Dynamic Resource Allocation, Kubernetes 1.34 and newer): ResourceSlices tell the scheduler what
 * each GPU of this node has, and a ResourceClaim that it has allocated becomes one tenant, whose quota is the memory and whose
 * share the cores that the claim was given. Of the system daemon alone. Main thread only.
 *
 *     kubelet finds our socket -> GetInfo -> NodePrepareResources: the claim is read from the API server, made a tenant,
 *     and its CDI spec written -> containers of any pod of the claim start with that -> NodeUnprepareResources
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/state/node/node.h"

struct dra;

/* What no setting shows by itself. -EINVAL with what would be right. Pure. */
int dra_check(const struct config *config, struct error *err);

/* *ret: NULL where the setting kube_dra is off. Claims and the Kubernetes client must be there. */
int dra_start(struct node *node, struct dra **ret, struct error *err);
/*
 * Takes the socket away; claims stay, and so do the slices: the kubelet removes them if no driver is there for half a minute.
 * NULL is fine; returns NULL.
 */
struct dra *dra_stop(struct dra *dra);

struct dra_figures {
	bool is_registered; /* the kubelet said so, and is connected */
	uint64_t devices;   /* in the slice that the API server has */
	uint64_t prepared, refused,
		unprepared;  /* claims, since the daemon started; again counts again */
	uint64_t prepare_ns; /* the time of the calls that prepared, the sum */
	uint64_t publish_failures;
};

/* False: there is no driver. */
bool dra_figures(const struct dra *dra, struct dra_figures *ret);

/* What tenants were promised may have changed. NULL is fine. */
void dra_promises_changed(struct dra *dra);
