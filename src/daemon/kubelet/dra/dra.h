/*
 * The DRA driver gpu.allot.dev (Dynamic Resource Allocation, Kubernetes 1.34 and newer). ResourceSlices tell the scheduler
 * what this node's GPUs have. Each allocated ResourceClaim becomes a tenant, with the claim's memory as quota and its cores
 * as share. A daemon with --private has no such driver. Main thread only.
 *
 *     kubelet finds our socket -> GetInfo -> NodePrepareResources: read the claim from the API server, make a tenant,
 *     write the CDI spec -> containers of any pod of the claim start with that spec -> NodeUnprepareResources
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/state/node/node.h"

struct dra;

/* Checks the settings. Returns -EINVAL if one is invalid or two contradict each other; err says what would be right. Pure. */
int dra_check(const struct config *config, struct error *err);

/* Starts the driver. Leaves *ret as it is if the setting kube_dra is off. Claims and the Kubernetes client must exist. */
int dra_start(struct node *node, struct dra **ret, struct error *err);
/*
 * Removes the socket. Claims and ResourceSlices stay; the kubelet removes the ResourceSlices if no driver registers within
 * half a minute. NULL is allowed; returns NULL.
 */
struct dra *dra_stop(struct dra *dra);

struct dra_figures {
	bool is_registered; /* the kubelet has confirmed the registration and is connected */
	uint64_t devices;   /* number of devices in this node's ResourceSlices at the API server */
	uint64_t prepared, refused,
		unprepared;  /* claims since the start; a repeated prepare counts again */
	uint64_t prepare_ns; /* total time of the calls that prepared claims */
	uint64_t publish_failures;
};

/* Returns false if there is no driver. */
bool dra_figures(const struct dra *dra, struct dra_figures *ret);

/* Call when tenants' promises of memory or guarantees of GPU time may have changed. NULL is allowed. */
void dra_promises_changed(struct dra *dra);
