/*
 * The DRA driver gpu.allot.dev (Dynamic Resource Allocation, Kubernetes 1.34 and newer). ResourceSlices tell the scheduler what
 * each GPU of this node has. Each ResourceClaim that the scheduler has allocated becomes one tenant. The claim's memory becomes
 * the tenant's quota, and the claim's cores the tenant's share. Only the system daemon has this driver. Main thread only.
 *
 *     kubelet finds our socket -> GetInfo -> NodePrepareResources: read the claim from the API server, make a tenant,
 *     write the CDI spec -> containers of any pod of the claim start with that spec -> NodeUnprepareResources
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/state/node/node.h"

struct dra;

/* Checks the settings that depend on each other. Returns -EINVAL, with what would be right, if they do not fit together. Pure. */
int dra_check(const struct config *config, struct error *err);

/* Sets *ret to NULL if the setting kube_dra is off. Precondition: the claims and the Kubernetes client exist. */
int dra_start(struct node *node, struct dra **ret, struct error *err);
/*
 * Removes the socket. Claims stay. The ResourceSlices stay too: the kubelet removes them if no driver registers within half a
 * minute. NULL is fine; returns NULL.
 */
struct dra *dra_stop(struct dra *dra);

struct dra_figures {
	bool is_registered; /* the kubelet has confirmed the registration, and is connected */
	uint64_t devices;   /* number of devices in the ResourceSlices that the API server has */
	uint64_t prepared, refused,
		unprepared;  /* claims since the daemon started; repeated calls count each time */
	uint64_t prepare_ns; /* total time of the calls that prepared claims */
	uint64_t publish_failures;
};

/* Returns false if there is no driver. */
bool dra_figures(const struct dra *dra, struct dra_figures *ret);

/* To be called when the tenants' guarantees may have changed. NULL is fine. */
void dra_promises_changed(struct dra *dra);
