/* Internal to the device plugin (plugin.h). */
#pragma once

#include "daemon/kubelet/devices/pod_resources.h"
#include "daemon/kubelet/devices/slices.h"
#include "daemon/kubelet/devices/units.h"
#include "daemon/kubelet/endpoint/endpoint.h"
#include "net/grpc_server.h"

struct reconciler;
struct annotated;
struct claim_holders;
struct error;
struct vcuda;

#define PLUGIN_MAX_ENDPOINTS 2

struct plugin {
	struct node *node;
	struct slices slices; /* shown by the first endpoint */
	struct units units;   /* shown by the second endpoint */
	struct endpoint endpoint[PLUGIN_MAX_ENDPOINTS];
	unsigned endpoint_count;
	struct pod_resources *pods; /* which slices pods hold; NULL: the kubelet is not asked */
	uint64_t pods_requested_ns; /* when `pods` was last asked; 0: never */
	struct reconciler *reconciler;
	struct claim_holders *holders;
	struct loop_source *sync_timer;
	/* NULL if the names of slices alone tell what a container gets */
	struct annotated *annotated;
	struct vcuda *vcuda; /* set with `annotated` for gpu-manager's vocabulary; else NULL */
	uint64_t allocations, refused, allocate_ns;
};

/* calls.c: answers the call with the error, and logs it. */
void plugin_refuse(struct grpc_call *call, const char *method, int error, const struct error *err);

/* sync_loop.c: starts the plugin's periodic work. */
int plugin_begin_sync(struct plugin *plugin, struct error *err);
/* Call after a claim was made: the kubelet is then asked within two seconds, not ten, which containers hold devices. */
void plugin_request_pods_soon(struct plugin *plugin);
/* Stops the periodic work. Allowed if plugin_begin_sync() failed or was not called. */
void plugin_end_sync(struct plugin *plugin);
/* Asks the kubelet now which containers hold devices, because a call waits for that; but at most once a second. */
void plugin_request_pods(struct plugin *plugin);

/* calls.c: the service's methods, and the largest size of a request */
extern const struct grpc_method plugin_methods[];
extern const size_t plugin_method_count;
size_t plugin_request_most_bytes(const struct endpoint *endpoint);
/* Rebuilds and sends the lists of devices. After -ENOMEM some watchers have the old list. */
int plugin_publish(struct plugin *plugin);
